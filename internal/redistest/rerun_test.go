package redistest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// A task is the job of TestWorker.
type task struct {
	Do   string
	Text string
}

// TestWorker is the process of the tests below.
func TestWorker(t *testing.T) {
	RunJob(t, func(p *Parent, j task) {
		switch j.Do {
		case "echo":
			fmt.Println("noise on the standard output")
			for {
				var text string
				if err := p.Next(&text); err == io.EOF {
					return
				} else if err != nil {
					t.Fatal(err)
				}
				p.Say(j.Text + text)
			}
		case "fail":
			p.Say("before")
			t.Error("the reason")
		case "talk":
			for range 10_000 { // more than a pipe holds
				p.Say(j.Text)
			}
		case "hang":
			p.Say(os.Getpid())
			p.Wait()
		}
	})
}

func TestRerunTalks(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100_000)
	c := Rerun(t, "TestWorker", task{"echo", "echo of\n"})
	for _, text := range []string{"", "one", long} {
		if err := c.Say(text); err != nil {
			t.Fatal(err)
		}
		var got string
		if err := c.Next(&got); err != nil || got != "echo of\n"+text {
			t.Errorf("got %.40q, %v; want the echo of %.40q", got, err, text)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if exists(c.proc.pid()) {
		t.Error("the process is still there")
	}
	c.Kill() // does no harm
}

func TestRerunQuotesAFailure(t *testing.T) {
	t.Parallel()
	c := Rerun(t, "TestWorker", task{Do: "fail"})
	var got string
	if err := c.Next(&got); err != nil || got != "before" {
		t.Errorf("got %q, %v; want the line before the failure", got, err)
	}
	for _, err := range []error{c.Next(&got), c.Close()} {
		if err == nil || !strings.Contains(err.Error(), "the reason") {
			t.Errorf("got %v, want the reason", err)
		}
	}
	if err := c.Next(&got); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want io.EOF", err)
	}
}

func TestRerunOfNoJob(t *testing.T) {
	t.Parallel()
	// The first child runs no test, and the second fails.
	for name, job := range map[string]any{"TestNone": 1, "TestWorker": "no task"} {
		c := Rerun(t, name, job)
		var got any
		if err := c.Next(&got); !errors.Is(err, io.EOF) {
			t.Errorf("%s: got %v, %v; want io.EOF", name, got, err)
		}
	}
}

// TestRerunClosesUnread ends a process that waits for a reader.
func TestRerunClosesUnread(t *testing.T) {
	t.Parallel()
	c := Rerun(t, "TestWorker", task{"talk", "an unread line"})
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestRerunIsKilledAndStopped(t *testing.T) {
	t.Parallel()
	var pids []int
	t.Run("children", func(t *testing.T) {
		for _, end := range []func(*Child){
			(*Child).Kill,
			func(c *Child) { c.Stop(); c.Kill() },
			func(c *Child) { c.Stop(); c.Continue(); c.CloseInput(); c.Kill() },
			(*Child).Stop,
			func(*Child) {},
		} {
			c := Rerun(t, "TestWorker", task{Do: "hang"})
			var pid int
			if err := c.Next(&pid); err != nil || pid != c.proc.pid() {
				t.Fatalf("got pid %d, %v; want %d", pid, err, c.proc.pid())
			}
			pids = append(pids, pid)
			end(c)
		}
	})
	for _, pid := range pids {
		if exists(pid) {
			t.Errorf("process %d is still there", pid)
		}
	}
}
