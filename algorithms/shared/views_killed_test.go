// Processes that are killed with units that they have admitted ahead, and that Redis has not charged.

package shared

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/redistest"
)

const (
	doomed      = 4  // processes
	doomedAhead = 20 // per cent
	doomedKeys  = 50
)

// Each of the doomed processes may admit 5 units of a key ahead.
var doomedLimit = algorithms.TokenBucket(100, 9_000*time.Hour)

// A doomedJob is the job of a process: it waits until its census is certain, and for its parent. Then it takes units.
type doomedJob struct {
	Addr string
	Hold bool // none of its charges reach Redis
}

// A doomedNews is what a process says to its parent.
type doomedNews struct {
	Key   int           // of which a unit was admitted
	Began time.Duration // from the first announcement of the process to its first take ahead, if it has taken none of a key
	Over  bool          // no more units can be admitted
}

// An announcements hook notes when the first announcement of a process is sent, and then holds scripts as trips does.
type announcements struct {
	trips
	once  sync.Once
	first atomic.Pointer[time.Time]
}

func (h *announcements) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	after := h.trips.ProcessPipelineHook(next)
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "zadd" {
			h.once.Do(func() { now := time.Now(); h.first.Store(&now) })
		}
		return after(ctx, cmds)
	}
}

// feed lets all scripts pass until shut is closed.
func (h *announcements) feed(shut <-chan struct{}) {
	for {
		select {
		case h.pass <- struct{}{}:
		case <-shut:
			return
		}
	}
}

// TestDoomedProcess does the job of TestKilledAheadOfRedis.
func TestDoomedProcess(t *testing.T) {
	redistest.RunJob(t, func(p *redistest.Parent, job doomedJob) {
		client := redis.NewClient(&redis.Options{Addr: job.Addr})
		h := &announcements{trips: trips{pass: make(chan struct{})}}
		client.AddHook(h)
		l, err := New(struct{ redis.UniversalClient }{client}, // its WithTimeout would have no hooks
			&Options{Ahead: doomedAhead, Instances: doomed, Deadline: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		shut, wait := make(chan struct{}), sync.WaitGroup{}
		wait.Go(func() { h.feed(shut) })
		redistest.Until(t, "it admits ahead", func() bool {
			take(t, l, "usr=first", ample, 1)
			return l.views.asked[askedNot].Load() > 0
		})
		began := time.Since(*h.first.Load())
		redistest.Until(t, "all is charged", func() bool { return l.Stats().Ahead.Unacknowledged == 0 })
		if job.Hold {
			close(shut)
			wait.Wait()
		}
		p.Say(doomedNews{Began: began})
		if err := p.Next(new(bool)); err != nil {
			t.Fatal(err)
		}
		spendAll(p, l, job.Hold)
		p.Say(doomedNews{Over: true})
		p.Wait()
	})
}

// spendAll takes units of all keys, of each twice as many as this process may admit ahead. It returns when each take was
// admitted ahead or asks Redis. If scripts are held, takes do not wait for each other.
func spendAll(p *redistest.Parent, l *Limiter, held bool) {
	asked := func() (n uint64) {
		for i := range l.views.asked {
			n += l.views.asked[i].Load()
		}
		return n
	}
	keys, before := manyKeys(doomedKeys), asked()
	const takes = 10 * doomedKeys
	for i := range takes {
		one := func() {
			d, err := algorithms.Allow(context.Background(), l, keys[i%doomedKeys], doomedLimit)
			if err == nil && d.Allowed {
				p.Say(doomedNews{Key: i % doomedKeys})
			}
		}
		if held {
			go one()
		} else {
			one()
		}
	}
	for asked() < before+takes {
		time.Sleep(time.Millisecond)
	}
}

// TestKilledAheadOfRedis: no process goes ahead before its census is certain. Processes that are killed leave Redis without
// at most what they may admit ahead: of each key, Ahead per cent of the burst in all processes. Redis has charged no more than was
// admitted, and one unit of each process, which was killed before it could tell it.
func TestKilledAheadOfRedis(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	for name, hold := range map[string]bool{"no charge reaches Redis": true, "anywhere": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			admitted, ahead := killAll(t, doomedJob{server.Addr(), hold})
			direct := newRedis(t, server.Client(), nil)
			var lacks, most, all int64
			for i, key := range manyKeys(doomedKeys) {
				charged := used(t, direct, key, doomedLimit)
				lack := admitted[i] - charged
				if lack > ahead || lack < -doomed || hold && charged > 0 {
					t.Errorf("%s: got %d of %d admitted units charged, want all but %d", key, charged, admitted[i], ahead)
				}
				lacks, most, all = lacks+lack, max(most, lack), all+admitted[i]
			}
			t.Logf("%d admitted; Redis lacks %d of them, %d of one key", all, lacks, most)
			if all == 0 || hold && most == 0 {
				t.Error("nothing was admitted ahead")
			}
		})
	}
}

// killAll runs the doomed processes, and kills them: if they hold their charges, when no more units can be admitted, and
// otherwise anywhere. It returns how many units of each key were admitted, and how many of one key may have been admitted ahead.
func killAll(t *testing.T, job doomedJob) (admitted [doomedKeys]int64, ahead int64) {
	t.Helper()
	var children []*redistest.Child
	for range doomed {
		children = append(children, redistest.Rerun(t, "TestDoomedProcess", job))
	}
	hear := func(child *redistest.Child) (news doomedNews, ok bool) { return news, child.Next(&news) == nil }
	for i, child := range children {
		news, ok := hear(child)
		if !ok || news.Began < aheadAfter {
			t.Errorf("process %d: it goes ahead %v after its first announcement, want %v or more", i, news.Began, aheadAfter)
		}
	}
	for _, child := range children {
		if err := child.Say(true); err != nil {
			t.Fatal(err)
		}
	}
	for _, child := range children {
		last := rand.IntN(6 * doomedKeys)
		for n := 0; ; n++ {
			news, ok := hear(child)
			if !ok {
				break // it is dead, and what it said was read
			}
			if !news.Over {
				admitted[news.Key]++
			}
			if news.Over || !job.Hold && n == last {
				child.Kill()
			}
		}
	}
	return admitted, doomedLimit.Burst() * doomedAhead / 100
}
