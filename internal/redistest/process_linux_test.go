package redistest

import (
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
)

// TestDiesWithTestBinary ends test binaries that run servers and other processes, and wants all of these dead.
func TestDiesWithTestBinary(t *testing.T) {
	skipWithoutServer(t)
	t.Parallel()
	for _, end := range []string{"kill", "panic", "panic elsewhere", "exit"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			c := Rerun(t, "TestOwnerOfServers", end)
			var pids []int
			if err := c.Next(&pids); err != nil {
				t.Fatal(err)
			}
			if end == "kill" {
				c.Kill()
			} else {
				<-c.proc.done
			}
			for _, pid := range pids {
				if !poll(Patience, func() bool { return !exists(pid) }) {
					t.Errorf("process %d outlived the test binary that started it", pid)
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		})
	}
}

// TestOwnerOfServers is the job of TestDiesWithTestBinary. It starts servers, one of them frozen and one in an endless
// script, and another process that hangs. It reports their pids, and ends the test binary or waits to be killed.
func TestOwnerOfServers(t *testing.T) {
	RunJob(t, func(p *Parent, end string) {
		servers := []*Server{Start(t), Start(t), Start(t)}
		servers = append(servers, startSentinel(t, servers[0].port))
		servers[1].Stop()
		servers[2].StartScript()
		pids := []int{Rerun(t, "TestWorker", task{Do: "hang"}).proc.pid()}
		for _, s := range servers {
			pids = append(pids, s.pid())
		}
		p.Say(pids)
		switch end {
		case "panic":
			panic("on purpose")
		case "panic elsewhere":
			go panic("on purpose")
		case "exit":
			os.Exit(1)
		}
		select {}
	})
}

// init gives the main thread to the main goroutine alone. The main thread never ends, and the test below needs a thread
// that ends.
func init() { runtime.LockOSThread() }

// TestOutlivesTheStartingThread starts a server from a thread that ends at once, and wants the server alive.
func TestOutlivesTheStartingThread(t *testing.T) {
	skipWithoutServer(t)
	t.Parallel()
	tid := 0
	started := make(chan *Server)
	go func() {
		runtime.LockOSThread() // and no unlock: the thread ends with the goroutine
		tid = syscall.Gettid()
		started <- Start(t)
	}()
	s := <-started
	Until(t, "the starting thread has ended", func() bool {
		_, err := os.Stat("/proc/self/task/" + strconv.Itoa(tid))
		return err != nil
	})
	if err := s.Client().Ping(t.Context()).Err(); err != nil {
		t.Errorf("PING: %v", err)
	}
}
