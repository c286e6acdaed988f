package redistest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// This file runs the test binary again, as another process that does a job. A test starts the process with Rerun. A Test
// function of the same package does the job with RunJob:
//
//	func TestWorker(t *testing.T) {
//		redistest.RunJob(t, func(p *redistest.Parent, j job) {
//			p.Say(work(t, j))
//		})
//	}
//
// The job travels as JSON in the environment. The two sides send each other lines of JSON. The parent writes to the
// child's standard input. The child writes to a pipe of its own, which no output of the testing package disturbs.

const (
	testEnv    = "REDISTEST_TEST" // the only Test function that runs in the child
	jobEnv     = "REDISTEST_JOB"
	answersFD  = 3               // the first descriptor of exec.Cmd.ExtraFiles
	jobTimeout = 5 * time.Minute // after it, the testing package ends the child
)

// A Child is another process of this test binary. The end of the test kills it. On Linux the death of the parent kills it,
// too.
type Child struct {
	tb      testing.TB
	proc    *process
	in      io.WriteCloser
	lines   *bufio.Reader // its answers
	printed bytes.Buffer  // readable once proc is done
}

// Rerun starts the test binary again. The child runs the Test function with that name, which must call [RunJob]. The
// child's standard error appears in the log of this test.
func Rerun(tb testing.TB, test string, job any) *Child {
	tb.Helper()
	text, err := json.Marshal(job)
	must(tb, err)
	c := &Child{tb: tb}
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.timeout="+jobTimeout.String())
	cmd.Stdout, cmd.Stderr = &c.printed, tb.Output()
	cmd.WaitDelay = deadline // a process that the child started may keep the standard error open
	cmd.Env = append(os.Environ(), testEnv+"="+test, jobEnv+"="+string(text),
		"TMPDIR="+tb.TempDir(),     // a killed child does not remove its files
		"GORACE=atexit_sleep_ms=0") // otherwise the race detector delays each end by a second
	answers, theirs, err := os.Pipe()
	must(tb, err)
	defer theirs.Close()                       // the child has its own copy
	tb.Cleanup(func() { _ = answers.Close() }) // after Kill has ended the writer
	// Otherwise Next would wait forever for a stopped child.
	must(tb, answers.SetReadDeadline(time.Now().Add(jobTimeout+deadline)))
	c.lines, cmd.ExtraFiles = bufio.NewReader(answers), []*os.File{theirs}
	c.in, err = cmd.StdinPipe()
	must(tb, err)
	c.proc, err = begin(cmd)
	must(tb, err)
	tb.Cleanup(c.Kill)
	return c
}

// Next reads the next line of the child into v. Once the child has ended, it returns an error that is io.EOF and quotes
// the child's output. It belongs to one goroutine at a time.
func (c *Child) Next(v any) error {
	line, err := c.lines.ReadBytes('\n')
	if err == nil {
		return json.Unmarshal(line, v)
	}
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("redistest: process %d: %w", c.proc.pid(), err)
	}
	select {
	case <-c.proc.done:
		return fmt.Errorf("redistest: process %d ended (%v): %w\n%s", c.proc.pid(), c.proc.err, err, &c.printed)
	case <-time.After(deadline):
		return fmt.Errorf("redistest: process %d closed its pipe: %w", c.proc.pid(), err)
	}
}

// Say sends v to the child; see [Parent.Next].
func (c *Child) Say(v any) error { return writeLine(c.in, v) }

// Kill ends the process as a crash would, and returns when it is gone. Next still returns the lines that the child sent
// before. Killing a dead process does nothing.
func (c *Child) Kill() {
	c.tb.Helper()
	if err := c.proc.kill(); err != nil {
		c.tb.Errorf("redistest: %v", err)
	}
}

// Stop freezes the process until Continue. Kill ends a frozen process, too.
func (c *Child) Stop() {
	c.tb.Helper()
	if err := c.proc.freeze(); err != nil {
		c.tb.Errorf("redistest: %v", err)
	}
}

// Continue lets a stopped process go on.
func (c *Child) Continue() {
	c.tb.Helper()
	if err := c.proc.signal(sigContinue); err != nil {
		c.tb.Errorf("redistest: SIGCONT for process %d: %v", c.proc.pid(), err)
	}
}

// Close closes the input of the child, which ends [Parent.Wait], and returns when the process has ended. If the child did
// not exit with code 0, the error says how it ended and quotes its output. Close drops the lines that were not read.
func (c *Child) Close() error {
	c.CloseInput()
	_, _ = io.Copy(io.Discard, c.lines) // a full pipe would keep the child from ending
	<-c.proc.done
	if c.proc.err != nil {
		return fmt.Errorf("redistest: process %d: %w\n%s", c.proc.pid(), c.proc.err, &c.printed)
	}
	return nil
}

// CloseInput closes the input of the child and does not wait. It lets several children end at the same time; call Close
// afterwards.
func (c *Child) CloseInput() { _ = c.in.Close() } // an error means that the process has ended

// A Parent is the job's connection to the test that has started this process.
type Parent struct {
	t       *testing.T
	in      *bufio.Reader
	mu      sync.Mutex
	answers *os.File
}

// RunJob does the job that a test has given to this process, and skips the test in any other process. It fails the test
// if the job does not fit J.
func RunJob[J any](t *testing.T, do func(p *Parent, job J)) {
	t.Helper()
	if os.Getenv(testEnv) != t.Name() {
		t.Skip("this is the job of a process that other tests start")
	}
	var job J
	must(t, json.Unmarshal([]byte(os.Getenv(jobEnv)), &job))
	syscall.CloseOnExec(answersFD) // a child of this process would keep the pipe open
	p := &Parent{t: t, in: bufio.NewReader(os.Stdin), answers: os.NewFile(answersFD, "answers")}
	t.Cleanup(func() { _ = p.answers.Close() })
	do(p, job)
}

// Say sends v to the test; see [Child.Next]. Any goroutine may call it.
func (p *Parent) Say(v any) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := writeLine(p.answers, v); err != nil {
		p.t.Errorf("redistest: %v", err)
	}
}

// Next reads the next line of the test into v. The error is io.EOF after [Child.Close], or when the parent is gone.
func (p *Parent) Next(v any) error {
	line, err := p.in.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, v)
}

// Wait returns after [Child.Close], or when the parent is gone.
func (p *Parent) Wait() { _, _ = io.Copy(io.Discard, p.in) }

func writeLine(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}
