package shared

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

const openFor = time.Second

func TestOutageEnds(t *testing.T) {
	t.Parallel()
	var wards []*ward
	for _, ill := range illnesses {
		wards = append(wards, newWard(t, ill, nil))
	}
	for _, w := range wards {
		w.ill.begin(w.patient)
	}
	for _, w := range wards {
		w.awaitOpen()
	}
	time.Sleep(openFor / 4)
	for _, w := range wards {
		w.end()
	}
	for _, w := range wards {
		w.awaitRecovery(t)
	}
}

// A ward is a patient with an illness, and callers.
type ward struct {
	*patient
	*callers
	ill    illness
	ended  time.Time
	before int64 // calls that Redis had decided when the illness ended
}

func newWard(t *testing.T, ill illness, tune func(*redis.Options)) *ward {
	t.Helper()
	p := newPatient(t, ill, tune)
	stack := must(t, p.client, &Options{OpenFor: openFor, Deadline: unhurried(defaultDeadline)})
	w := &ward{patient: p, ill: ill, callers: startCallers(t, stack, 4, 5*time.Millisecond, nil)}
	w.awaitShared()
	return w
}

func (w *ward) end() {
	w.before = w.shared.Load()
	w.ill.end(w.patient)
	w.ended = time.Now()
}

func (w *ward) awaitRecovery(t *testing.T) {
	t.Helper()
	redistest.Until(t, "decided by Redis again: "+w.ill.name, func() bool { return w.shared.Load() > w.before })
	t.Logf("%s: Redis decides again %v after it ended", w.ill.name, time.Since(w.ended).Round(time.Millisecond))
	w.dismiss()
}

// A pool in which as many dials failed as it has places dials no more by
// itself, but once a second, and until then repeats the last error.
func TestOutageEndsForASaturatedPool(t *testing.T) {
	t.Parallel()
	const places = 2
	for _, ill := range illnesses[:3] { // those in which dials fail
		t.Run(ill.name, func(t *testing.T) {
			t.Parallel()
			w := newWard(t, ill, func(o *redis.Options) {
				o.PoolSize, o.DialTimeout = places, 50*time.Millisecond
			})
			ill.begin(w.patient)
			// Five dials are one failure of the pool.
			redistest.Until(t, "saturated", func() bool { return w.wire.failed.Load() > 5*places })
			w.awaitOpen()
			w.end()
			w.awaitRecovery(t)
		})
	}
}

// What was admitted without Redis is told as of when it was by the clock that
// decides, whatever Redis's own says.
func TestOutageIsToldByTheClockOfDecisions(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, ahead := range []time.Duration{-time.Hour, time.Hour} {
		o := &Options{
			Now:     func() time.Time { return time.Now().Add(ahead) },
			OpenFor: 100 * time.Millisecond, Deadline: unhurried(defaultDeadline),
		}
		stack := must(t, server.Client(), o)
		callers := startCallers(t, stack, 2, 5*time.Millisecond, nil)
		callers.awaitShared()
		limit, key := algorithms.TokenBucket(10, 30*time.Minute), fmt.Sprint("usr=", ahead)
		server.Stop()
		callers.awaitOpen()
		const local = 5
		for range local {
			if d := take(t, stack, key, limit, 1); !d.Allowed || d.Source != algorithms.Local {
				t.Errorf("got %+v, want it admitted locally", d)
			}
		}
		server.Continue()
		redistest.Until(t, "told", func() bool {
			got := stack.Stats().Fallback
			return !got.Open && got.Owed == 0
		})
		callers.dismiss()
		r := newRedis(t, server.Client(), &Options{Now: o.Now, Deadline: 10 * time.Second})
		d, err := algorithms.AllowN(context.Background(), r, key, limit, 0)
		if err != nil || d.Remaining > limit.Burst()-local {
			t.Errorf("a clock ahead by %v: Redis holds %d units, %v, want the %d that were admitted without it",
				ahead, limit.Burst()-d.Remaining, err, local)
		}
	}
}
