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

// A process is one run of redis-server.
type process struct {
	cmd  *exec.Cmd
	log  string        // path of what the process printed
	done chan struct{} // closed once the process has ended and its pid is free
}

// launch starts the program at path in dir. It returns once the process exists, not once it serves.
func launch(path, dir string, args []string) (*process, error) {
	p := &process{log: filepath.Join(dir, "redis.log"), done: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(path, args...)
	p.cmd.Dir = dir
	p.cmd.Stdout = log
	p.cmd.Stderr = log
	dieWithParent(p.cmd)

	started := make(chan error)
	go func() {
		// The kernel sends the parent-death signal when the thread that forked ends, which may be long before
		// the test binary does. So this goroutine keeps its thread until the process has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer log.Close()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = p.cmd.Wait() // a killed process reports an error; that it ended is all that counts
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

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

// kill ends the process, stopped or not, and waits until its pid is free.
func (p *process) kill() error {
	// An error means that the process has just ended by itself; the wait below finds out.
	_ = p.signal(syscall.SIGKILL)
	select {
	case <-p.done:
		return nil
	case <-time.After(deadline):
		return fmt.Errorf("redis-server %d is still there %v after SIGKILL", p.cmd.Process.Pid, deadline)
	}
}

// output returns what the process has printed so far.
func (p *process) output() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text))
}
