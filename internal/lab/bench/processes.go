// Processes of this program that load one Redis together.

package main

import (
	"bufio"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// workerEnv is the variable with the job of a worker.
const workerEnv = "PENSTOCK_BENCH_WORKER"

// A job is the task of a worker.
type job struct {
	Addr     string
	Limiter  string // a key of workerSetups
	Limit    string // as algorithms.ParseLimit reads it
	Callers  int
	Keys     int
	Exponent float64 // of the Zipf distribution of the keys; 0: all keys are equally likely
	WarmUp   time.Duration
	Lasts    time.Duration
}

// A yield has the results of a worker.
type yield struct {
	Begin, End time.Time // of the measured part, after the warm-up
	Checks     int       // in the measured part
	AllChecks  int
	Latencies  histogram    // in the measured part
	Admitted   map[slot]int // units
	Denied     map[slot]int // checks
}

// A slot is a window of a key.
type slot struct {
	Key    int
	Window int64 // its number since the Unix epoch
}

func newYield() yield { return yield{Admitted: map[slot]int{}, Denied: map[slot]int{}} }

// sumOf adds up the yields of callers or processes that ran at the same time.
func sumOf(yields []yield) yield {
	sum := newYield()
	for i := range yields {
		y := &yields[i]
		sum.Begin, sum.End = y.Begin, y.End
		sum.Checks += y.Checks
		sum.AllChecks += y.AllChecks
		sum.Latencies.merge(&y.Latencies)
		for s, n := range y.Admitted {
			sum.Admitted[s] += n
		}
		for s, n := range y.Denied {
			sum.Denied[s] += n
		}
	}
	return sum
}

// A worker is a process with a job.
type worker struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// together runs a job in so many processes at once, and returns their yields. They
// begin when all of them are ready.
func (j job) together(ctx context.Context, processes int) (yields []yield, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var workers []*worker
	defer func() {
		if err != nil {
			cancel() // the other processes would wait forever to begin
		}
		for _, w := range workers {
			_ = w.cmd.Wait()
		}
	}()
	for range processes {
		w, err := j.start(ctx)
		if err != nil {
			return nil, err
		}
		workers = append(workers, w)
	}
	for _, w := range workers {
		if _, err := w.out.ReadString('\n'); err != nil {
			return nil, fmt.Errorf("a process: %w", err)
		}
	}
	yields = make([]yield, processes)
	errs := make([]error, processes)
	var group sync.WaitGroup
	for i, w := range workers {
		group.Go(func() { yields[i], errs[i] = w.finish() })
	}
	group.Wait()
	return yields, errors.Join(errs...)
}

func (j job) start(ctx context.Context) (*worker, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	task, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	w := &worker{cmd: exec.CommandContext(ctx, program)}
	w.cmd.Env = append(os.Environ(), workerEnv+"="+string(task))
	w.cmd.Stderr = os.Stderr
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.out = bufio.NewReader(out)
	return w, w.cmd.Start()
}

// finish lets a worker begin, and returns its yield.
func (w *worker) finish() (y yield, err error) {
	if _, err := io.WriteString(w.in, "begin\n"); err != nil {
		return y, err
	}
	return y, gob.NewDecoder(w.out).Decode(&y)
}

// work is the main function of a worker.
func work(ctx context.Context, task string, in io.Reader, out io.Writer) error {
	var j job
	if err := json.Unmarshal([]byte(task), &j); err != nil {
		return err
	}
	limit, err := algorithms.ParseLimit(j.Limit)
	if err != nil {
		return err
	}
	s := &stage{server: &server{addr: j.Addr}}
	defer s.close()
	takes, err := workerSetups[j.Limiter](s, limit)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "ready")
	if _, err := bufio.NewReader(in).ReadString('\n'); err != nil {
		return err
	}
	y, err := j.draw(ctx, takes, limit.Window())
	if err == nil {
		err = decidedRight(y.AllChecks, s.elsewhere())
	}
	if err != nil {
		return err
	}
	return gob.NewEncoder(out).Encode(y)
}
