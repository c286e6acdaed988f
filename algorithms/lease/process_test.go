// Leases of several processes over one Redis.

package lease

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/redistest"
)

const (
	workers = 4
	callers = 8 // of each worker
)

// newShared returns a limiter that counts in Redis, which ends with the test. Its
// deadline is a minute: a slow machine is no outage.
func newShared(tb testing.TB, client shared.Client, o shared.Options) *shared.Limiter {
	tb.Helper()
	o.Deadline = time.Minute
	l, err := shared.New(client, &o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := l.Close(); err != nil {
			tb.Error(err)
		}
	})
	return l
}

// work is the job of one of several processes: it takes from one key, with leases.
type work struct {
	Addr  string
	Limit string
	Lasts time.Duration
	Every time.Duration // of each caller; 0: as fast as it can, until it is denied
	Lease Options
}

// done is the result of work.
type done struct {
	Admitted int64
	At       map[int64]*tally // by the ms of the answer, since the epoch
	Astride  int64            // admitted, but asked for in another second than answered
	Lease    leaseStats
}

type tally struct{ Admitted, Denied int64 }

// The processes of the tests below run TestLeaseWorker.
func TestLeaseWorker(t *testing.T) {
	redistest.RunJob(t, func(p *redistest.Parent, w work) {
		limit, err := algorithms.ParseLimit(w.Limit)
		if err != nil {
			t.Fatal(err)
		}
		client := redis.NewClient(&redis.Options{Addr: w.Addr})
		defer client.Close()
		limiter := newShared(t, client, shared.Options{})
		l, err := New(limiter, &w.Lease)
		if err != nil {
			t.Fatal(err)
		}
		take(t, l, "usr=1", limit, 0)
		p.Say("ready")
		var begin string
		if err := p.Next(&begin); err != nil {
			t.Fatal(err)
		}
		result := w.do(t, l, limit)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		result.Lease = leaseStats(l.Stats().Lease)
		p.Say(result)
	})
}

func (w *work) do(t *testing.T, l *Limiter, limit algorithms.Limit) done {
	result := done{At: make(map[int64]*tally)}
	var mu sync.Mutex
	var wg sync.WaitGroup
	end := time.Now().Add(w.Lasts)
	for range callers {
		wg.Go(func() {
			own := done{At: make(map[int64]*tally)}
			pace := time.NewTicker(cmp.Or(w.Every, time.Millisecond))
			defer pace.Stop()
			for asked := time.Now(); asked.Before(end); asked = time.Now() {
				d, err := algorithms.Allow(context.Background(), l, "usr=1", limit)
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
	d.Lease.Lost += other.Lease.Lost
	d.Lease.Spent += other.Lease.Spent
	for ms, t := range other.At {
		at := d.at(ms)
		at.Admitted += t.Admitted
		at.Denied += t.Denied
	}
}

// run lets four processes work at once, and returns the sum of their results. It
// calls begin when they are ready.
func (w work) run(t *testing.T, begin func()) (sum done) {
	t.Helper()
	children := make([]*redistest.Child, workers)
	for i := range children {
		children[i] = redistest.Rerun(t, "TestLeaseWorker", w)
	}
	for _, child := range children {
		var ready string
		if err := child.Next(&ready); err != nil {
			t.Fatal(err)
		}
	}
	begin()
	for _, child := range children {
		if err := child.Say("begin"); err != nil {
			t.Fatal(err)
		}
	}
	sum.At = make(map[int64]*tally)
	for _, child := range children {
		var one done
		if err := child.Next(&one); err != nil {
			t.Fatal(err)
		}
		sum.add(one)
		if !one.Lease.accounted() {
			t.Errorf("got %+v, want every unit spent, returned or lost", one.Lease)
		}
		if err := child.Close(); err != nil {
			t.Error(err)
		}
		t.Logf("admitted %d, %+v", one.Admitted, one.Lease)
	}
	if sum.Lease.Spent == 0 {
		t.Error("nothing was leased")
	}
	return sum
}

// startWork returns a server, and work on it.
func startWork(t *testing.T, limit algorithms.Limit, w work) (*redis.Client, work) {
	if testing.Short() {
		t.Skip("left out by -short: takes seconds")
	}
	server := redistest.Start(t)
	w.Addr, w.Limit = server.Addr(), limit.String()
	return server.Client(), w
}

// Four processes use up a limit of a window to the last per cent, and no unit more.
// The units that they have not spent have gone back.
func TestProcessesUseUpWindows(t *testing.T) {
	const requests = 100_000
	for _, limit := range []algorithms.Limit{
		algorithms.FixedWindow(requests, 365*24*time.Hour), algorithms.SlidingWindowCounter(requests, 365*24*time.Hour),
	} {
		// Long enough for an instance that remembers a denial for a second to find
		// units that another instance has given back.
		client, w := startWork(t, limit, work{Lasts: 2500 * time.Millisecond})
		got := w.run(t, func() {})
		if got.Admitted > requests {
			t.Errorf("%v: admitted %d", limit, got.Admitted)
		}
		if d := take(t, newShared(t, client, shared.Options{DenyCacheKeys: shared.DenyCacheOff}), "usr=1", limit, 0); d.Remaining != requests-got.Admitted {
			t.Errorf("%v: got %d left, want %d: all that was not admitted", limit, d.Remaining, requests-got.Admitted)
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

// In every second four processes admit no more than the limit, and every unit on a
// lease is spent, given back, or lost with its window.
func TestProcessesShareSeconds(t *testing.T) {
	const requests = 2_000
	_, w := startWork(t, algorithms.FixedWindow(requests, time.Second), work{Lasts: 2500 * time.Millisecond})
	got := w.run(t, func() {})
	seconds := make(map[int64]int64)
	for ms, at := range got.At {
		seconds[ms/1_000] += at.Admitted
	}
	for _, admitted := range seconds {
		if admitted > requests {
			t.Errorf("admitted %d in a second, want at most %d", admitted, requests)
		}
	}
}

// Four processes admit in all no more than a token bucket gives, and every unit on a
// lease is spent or given back. In any interval they admit at most the units more
// that were on lease before it.
func TestProcessesShareATokenBucket(t *testing.T) {
	const rate, burst = 5_000, 5_000
	limit := algorithms.TokenBucket(rate, time.Second)
	client, w := startWork(t, limit, work{Lasts: 1500 * time.Millisecond})
	r := newShared(t, client, shared.Options{DenyCacheKeys: shared.DenyCacheOff})
	var begin time.Time
	got := w.run(t, func() {
		begin = time.Now()
		take(t, r, "usr=1", limit, burst/2) // a full bucket would lose what drains
	})
	d := take(t, r, "usr=1", limit, 0)
	passed := time.Since(begin)
	most := burst + rate*passed.Microseconds()/1e6
	accounted := got.Admitted + burst/2 + d.Remaining
	t.Logf("%d of %d in %v, %d left", got.Admitted+burst/2, most, passed, d.Remaining)
	if accounted > most {
		t.Errorf("%d admitted and left, want at most %d in %v", accounted, most, passed)
	}
	if got.Lease.Lost > 0 {
		t.Errorf("%d units were lost, want none: a bucket has no window that ends", got.Lease.Lost)
	}
	// The times are those of answers, which may be late for each caller's last take.
	onLease := int64(workers * burst * 10 / 100)
	if excess := got.excess(rate, burst+onLease+workers*callers); excess > 0 {
		t.Errorf("admitted %d more in some interval than the burst and the units on lease", excess)
	}
}

// excess returns by how many units a bucket with a rate per second is ever exceeded.
// An interval is a millisecond longer than the difference of its first and last.
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

// Below the limit, hardly any take is denied because other instances hold units.
func TestProcessesBelowTheLimit(t *testing.T) {
	for _, limit := range []algorithms.Limit{
		algorithms.FixedWindow(2_000, time.Second), algorithms.SlidingWindowCounter(2_000, time.Second),
		algorithms.TokenBucket(2_000, time.Second).WithBurst(200),
	} {
		// 32 callers take 1 980 per second at most.
		_, w := startWork(t, limit, work{
			Lasts: 1200 * time.Millisecond, Every: time.Second * workers * callers / 1_980, Lease: Options{HotAt: 100},
		})
		got := w.run(t, func() {})
		denied := got.denied(0, 1<<62)
		t.Logf("%v: admitted %d, denied %d", limit, got.Admitted, denied)
		if denied > (got.Admitted+denied)/100 {
			t.Errorf("%v: admitted %d, denied %d, want at most 1 %%", limit, got.Admitted, denied)
		}
	}
}
