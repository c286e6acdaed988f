package redistest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// This file starts processes that end with this one, and signals them.

// A process is a child of this process. On Linux the kernel kills it when this process dies.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed once the process has ended and its pid is free
	err  error         // how it ended; readable once done is closed
}

// begin starts the command. It returns once the process exists.
func begin(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	dieWithParent(cmd)
	started := make(chan error)
	go func() {
		// The kernel sends the parent-death signal when the thread that forked ends, which may be long before
		// the test binary does. So this goroutine keeps its thread until the process has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// ended reports whether the process is gone.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// signal sends sig, and does nothing when the process has ended.
func (p *process) signal(sig syscall.Signal) error {
	if p.ended() {
		return nil
	}
	return p.cmd.Process.Signal(sig)
}

// kill ends the process, even a stopped one, and waits until its pid is free.
func (p *process) kill() error {
	// An error means that the process has just ended by itself. Then the wait below returns at once.
	_ = p.signal(syscall.SIGKILL)
	select {
	case <-p.done:
		return nil
	case <-time.After(deadline):
		return fmt.Errorf("process %d is still there %v after SIGKILL", p.pid(), deadline)
	}
}

// freeze stops the process and returns when it no longer runs.
func (p *process) freeze() error {
	if err := p.signal(sigStop); err != nil {
		return err
	}
	if !poll(deadline, func() bool { return stopped(p.pid()) }) {
		return fmt.Errorf("process %d still runs %v after SIGSTOP", p.pid(), deadline)
	}
	return nil
}

// A run is one run of redis-server.
type run struct {
	*process
	log string // path of the file with the output
}

// launch starts the program at path in dir. It returns once the process exists, not once it serves.
func launch(path, dir string, args []string) (*run, error) {
	r := &run{log: filepath.Join(dir, "redis.log")}
	log, err := os.Create(r.log)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own copy
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	r.process, err = begin(cmd)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// output returns the output of the process so far.
func (r *run) output() string {
	text, err := os.ReadFile(r.log)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text))
}
