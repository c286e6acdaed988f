package algorithms_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

const (
	workEnv      = "PENSTOCK_TEST_LEASES" // holds a work, for a process of this test binary
	workers      = 4
	leaseCallers = 8 // of each worker
	workReady    = "ready"
	workDone     = "done "
)

// work is what one of several processes does: it takes from one key, with leases.
type work struct {
	Addr  string
	Limit string
	Lasts time.Duration
	Every time.Duration // of each caller; 0: as fast as it can, until it is denied
	Lease algorithms.LeaseOptions
}

// done is what came of work.
type done struct {
	Admitted int64
	At       map[int64]*tally // by ms since the epoch, of when the answer came
	Astride  int64            // admitted, but asked for in another second than answered
	Lease    algorithms.LeaseStats
}

type tally struct{ Admitted, Denied int64 }

// TestLeaseProcess is no test, but what the processes of the tests below run.
func TestLeaseProcess(t *testing.T) {
	text := os.Getenv(workEnv)
	if text == "" {
		t.Skip("a process of other tests")
	}
	var w work
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		t.Fatal(err)
	}
	limit, err := algorithms.ParseLimit(w.Limit)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: w.Addr})
	defer client.Close()
	s, err := algorithms.NewShared(client, &algorithms.Options{
		Redis:    algorithms.RedisOptions{Timeout: time.Minute}, // a slow machine is no outage
		Fallback: algorithms.FallbackOptions{Deadline: time.Minute},
		Lease:    &w.Lease,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := algorithms.Peek(t.Context(), s, "usr=1", limit); err != nil {
		t.Fatal(err)
	}
	fmt.Println(workReady)
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	result := w.do(t, s, limit)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	result.Lease = s.Stats().Lease
	line, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(workDone + string(line))
}

func (w *work) do(t *testing.T, s *algorithms.Stack, limit algorithms.Limit) done {
	result := done{At: make(map[int64]*tally)}
	var mu sync.Mutex
	var wg sync.WaitGroup
	end := time.Now().Add(w.Lasts)
	for range leaseCallers {
		wg.Go(func() {
			own := done{At: make(map[int64]*tally)}
			pace := time.NewTicker(cmp.Or(w.Every, time.Millisecond))
			defer pace.Stop()
			for asked := time.Now(); asked.Before(end); asked = time.Now() {
				d, err := algorithms.Allow(context.Background(), s, "usr=1", limit)
				if err != nil {
					t.Error(err)
					return
				}
				own.count(d.Allowed, asked)
				if w.Every > 0 || !d.Allowed {
					<-pace.C
				}
			}
			mu.Lock()
			defer mu.Unlock()
			result.add(own)
		})
	}
	wg.Wait()
	return result
}

func (d *done) count(admitted bool, asked time.Time) {
	answered := time.Now()
	at := d.at(answered.UnixMilli())
	switch {
	case !admitted:
		at.Denied++
		return
	case asked.Unix() != answered.Unix():
		d.Astride++
	default:
		at.Admitted++
	}
	d.Admitted++
}

func (d *done) at(ms int64) *tally {
	if d.At[ms] == nil {
		d.At[ms] = new(tally)
	}
	return d.At[ms]
}

func (d *done) add(other done) {
	d.Admitted += other.Admitted
	d.Astride += other.Astride
	d.Lease.Spent += other.Lease.Spent
	for ms, t := range other.At {
		at := d.at(ms)
		at.Admitted += t.Admitted
		at.Denied += t.Denied
	}
}

// run lets four processes work at once, and returns what came of it together.
// It calls begin when they are ready.
func (w work) run(t *testing.T, begin func()) (sum done) {
	t.Helper()
	text, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	var inputs []io.Writer
	var outputs []*bufio.Reader
	var processes []*exec.Cmd
	for range workers {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLeaseProcess$", "-test.timeout=60s")
		cmd.Env = append(os.Environ(), workEnv+"="+string(text), "GORACE=atexit_sleep_ms=0")
		cmd.Stderr = os.Stderr
		in, inErr := cmd.StdinPipe()
		out, outErr := cmd.StdoutPipe()
		if inErr != nil || outErr != nil || cmd.Start() != nil {
			t.Fatal("a process cannot be started")
		}
		inputs, outputs, processes = append(inputs, in), append(outputs, bufio.NewReader(out)), append(processes, cmd)
	}
	for _, out := range outputs {
		lineOf(t, out, workReady)
	}
	begin()
	for _, in := range inputs {
		fmt.Fprintln(in)
	}
	sum.At = make(map[int64]*tally)
	for i, out := range outputs {
		var one done
		if err := json.Unmarshal([]byte(lineOf(t, out, workDone)), &one); err != nil {
			t.Fatal(err)
		}
		sum.add(one)
		if _, err := io.Copy(io.Discard, out); err != nil {
			t.Error(err)
		}
		if err := processes[i].Wait(); err != nil {
			t.Error(err)
		}
		t.Logf("admitted %d, %+v", one.Admitted, one.Lease)
	}
	if sum.Lease.Spent == 0 {
		t.Error("nothing was leased")
	}
	return sum
}

// lineOf returns what follows the prefix of the first line that has it.
func lineOf(t *testing.T, out *bufio.Reader, prefix string) string {
	t.Helper()
	var read bytes.Buffer
	for {
		line, err := out.ReadString('\n')
		read.WriteString(line)
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			return rest
		}
		if err != nil {
			t.Fatalf("a process ended early, and said %s", read.String())
		}
	}
}

// startWork returns a server, and work on it.
func startWork(t *testing.T, limit algorithms.Limit, w work) (*redis.Client, work) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	server := redistest.Start(t)
	w.Addr, w.Limit = server.Addr(), limit.String()
	return server.Client(), w
}

// Four processes use up a limit of a window, to the last per cent, and no unit
// more; what they have not spent has gone back.
func TestProcessesUseUpWindows(t *testing.T) {
	const requests = 100_000
	for _, limit := range []algorithms.Limit{
		algorithms.FixedWindow(requests, 365*24*time.Hour), algorithms.SlidingWindowCounter(requests, 365*24*time.Hour),
	} {
		// Long enough for what one instance gives back to be found by others,
		// which may remember a denial for a second.
		client, w := startWork(t, limit, work{Lasts: 2500 * time.Millisecond})
		got := w.run(t, func() {})
		if got.Admitted > requests {
			t.Errorf("%v: admitted %d", limit, got.Admitted)
		}
		d, err := algorithms.Peek(t.Context(), newRedis(t, client, nil), "usr=1", limit)
		if err != nil || d.Remaining != requests-got.Admitted {
			t.Errorf("%v: got %d left, %v, want %d: all but what was admitted", limit, d.Remaining, err, requests-got.Admitted)
		}
		if left := requests - got.Admitted; got.denied(0, 1<<62) > 0 && left > requests/100 {
			t.Errorf("%v: denied, though %d were left", limit, left)
		}
	}
}

func (d *done) denied(from, to int64) (n int64) {
	for ms, t := range d.At {
		if from <= ms && ms < to {
			n += t.Denied
		}
	}
	return n
}

// In every second four processes admit what the limit says, no unit more, and,
// if they deny any, at most a hundredth less.
func TestProcessesShareSeconds(t *testing.T) {
	const requests = 2_000
	_, w := startWork(t, algorithms.FixedWindow(requests, time.Second), work{Lasts: 2500 * time.Millisecond})
	got := w.run(t, func() {})
	seconds := make(map[int64]int64)
	for ms, at := range got.At {
		seconds[ms/1_000] += at.Admitted
	}
	denied := 0
	for second, admitted := range seconds {
		if admitted > requests {
			t.Errorf("admitted %d in a second, want at most %d", admitted, requests)
		}
		if got.denied(1_000*second, 1_000*(second+1)) > 0 {
			denied++
			if admitted+got.Astride < requests*99/100 {
				t.Errorf("denied some, but admitted %d of %d", admitted, requests)
			}
		}
	}
	if denied == 0 {
		t.Error("no second had a denial: it shows nothing")
	}
}

// Of a token bucket, four processes admit in all what it gives, in any interval
// at most what was on lease before it more, and no unit vanishes.
func TestProcessesShareATokenBucket(t *testing.T) {
	const rate, burst = 5_000, 5_000
	limit := algorithms.TokenBucket(rate, time.Second)
	client, w := startWork(t, limit, work{Lasts: 1500 * time.Millisecond})
	r := newRedis(t, client, nil)
	var begin time.Time
	got := w.run(t, func() {
		begin = time.Now()
		half := []algorithms.Check{{Policy: algorithms.DefaultPolicy, Key: "usr=1", Limit: limit, Cost: burst / 2}}
		if err := r.Allow(t.Context(), half); err != nil { // so that it is not full, and loses nothing
			t.Fatal(err)
		}
	})
	d, err := algorithms.Peek(t.Context(), r, "usr=1", limit)
	if err != nil {
		t.Fatal(err)
	}
	passed := time.Since(begin)
	most := burst + rate*passed.Microseconds()/1e6
	accounted := got.Admitted + burst/2 + d.Remaining
	t.Logf("%d of %d in %v, %d left", got.Admitted+burst/2, most, passed, d.Remaining)
	if accounted > most {
		t.Errorf("%d admitted and left, want at most %d in %v", accounted, most, passed)
	}
	if d.Remaining < burst && accounted < most-most/100 {
		t.Errorf("%d admitted and left, want 99 %% of %d at least", accounted, most)
	}
	// By the time of the answer, which may be late for each caller's last take.
	onLease := int64(workers * burst * 10 / 100)
	if excess := got.excess(rate, burst+onLease+workers*leaseCallers); excess > 0 {
		t.Errorf("admitted %d more than the burst and what may be on lease in some interval", excess)
	}
}

// excess returns by how many units a bucket, with a rate per second, is ever
// exceeded. An interval is longer by a ms than its first and last ms differ.
func (d *done) excess(rate, burst int64) (most int64) {
	var level, at int64
	var times []int64
	for ms, t := range d.At {
		if t.Admitted > 0 {
			times = append(times, ms)
		}
	}
	slices.Sort(times)
	for _, ms := range times {
		level = max(0, level-(ms-at)*rate/1_000) + d.At[ms].Admitted
		at, most = ms, max(most, level-burst-rate/1_000)
	}
	return most
}

// Below the limit, hardly anybody is denied because others hold units.
func TestProcessesBelowTheLimit(t *testing.T) {
	for _, limit := range []algorithms.Limit{
		algorithms.FixedWindow(2_000, time.Second), algorithms.SlidingWindowCounter(2_000, time.Second),
		algorithms.TokenBucket(2_000, time.Second).WithBurst(200),
	} {
		// 32 leaseCallers take 1 980 per second at most.
		_, w := startWork(t, limit, work{
			Lasts: 1200 * time.Millisecond, Every: time.Second * workers * leaseCallers / 1_980, Lease: algorithms.LeaseOptions{HotAt: 100},
		})
		got := w.run(t, func() {})
		denied := got.denied(0, 1<<62)
		t.Logf("%v: admitted %d, denied %d", limit, got.Admitted, denied)
		if denied > (got.Admitted+denied)/100 {
			t.Errorf("%v: admitted %d, denied %d, want at most 1 %%", limit, got.Admitted, denied)
		}
	}
}
