// How late this process was, and how suspicions end.

package shared

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

func TestPulseLateness(t *testing.T) {
	const ms = 1_000
	tests := map[string]struct {
		gaps     []gap
		from, to int64
		want     int64
	}{
		"none":                       {nil, 0, 100 * ms, 0},
		"one":                        {[]gap{{20 * ms, 50 * ms}}, 0, 100 * ms, 30 * ms},
		"a short one is no lateness": {[]gap{{20 * ms, 30 * ms}}, 0, 100 * ms, 0},
		"two":                        {[]gap{{20 * ms, 50 * ms}, {60 * ms, 75 * ms}}, 0, 100 * ms, 45 * ms},
		"that overlap":               {[]gap{{30 * ms, 60 * ms}, {20 * ms, 50 * ms}}, 0, 100 * ms, 40 * ms},
		"one within another":         {[]gap{{30 * ms, 45 * ms}, {20 * ms, 50 * ms}}, 0, 100 * ms, 30 * ms},
		"before":                     {[]gap{{20 * ms, 50 * ms}}, 50 * ms, 100 * ms, 0},
		"after":                      {[]gap{{120 * ms, 150 * ms}}, 50 * ms, 100 * ms, 0},
		"astride the beginning":      {[]gap{{20 * ms, 60 * ms}}, 50 * ms, 100 * ms, 10 * ms},
		"astride the end":            {[]gap{{80 * ms, 160 * ms}}, 50 * ms, 100 * ms, 20 * ms},
		"all the time":               {[]gap{{10 * ms, 160 * ms}}, 50 * ms, 100 * ms, 50 * ms},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var p pulse
			for _, g := range tt.gaps {
				p.missed(g.from, g.to)
			}
			if got := p.lateness(tt.from, tt.to); got != tt.want {
				t.Errorf("got %d µs, want %d", got, tt.want)
			}
		})
	}
}

func (p *pulse) beats() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.beating
}

// The pulse beats for a second after it was started, and ends with the circuit.
func TestPulseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(pulse)
		p.start()
		time.Sleep(pulseFor / 2)
		p.start()
		time.Sleep(pulseFor - 2*pulsePause)
		if !p.beats() {
			t.Error("the pulse has ended within a second of its last start")
		}
		time.Sleep(4 * pulsePause)
		if p.beats() {
			t.Error("the pulse beats more than a second after its last start")
		}
		p.start()
		p.close()
		if p.start(); p.beats() {
			t.Error("the pulse beats after it was closed")
		}
	})
}

// A suspicion that is excused is no failure, one that is not is a failure at once,
// and one without a reply is a failure after a quarter of a second.
func TestSuspicions(t *testing.T) {
	for name, tt := range map[string]struct {
		settle func(c *circuit, s *suspicion)
		open   bool
	}{
		"excused":         {func(c *circuit, s *suspicion) { c.settle(s, true) }, false},
		"not excused":     {func(c *circuit, s *suspicion) { c.settle(s, false) }, true},
		"no reply so far": {func(*circuit, *suspicion) {}, false},
		"no reply": {func(c *circuit, _ *suspicion) {
			time.Sleep(suspectFor * time.Microsecond)
			c.sweep(monotonic())
		}, true},
		"excused, but too late": {func(c *circuit, s *suspicion) {
			time.Sleep(suspectFor * time.Microsecond)
			c.sweep(monotonic())
			c.settle(s, true)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCircuit(defaultDeadline)
				for range tripAfter {
					end, err := c.begin()
					if err != nil {
						break
					}
					time.Sleep(defaultDeadline)
					tt.settle(c, c.suspect(end, errTimeout, monotonic()))
				}
				_, err := c.begin()
				if open := err != nil; open != tt.open {
					t.Errorf("open is %v, want %v", open, tt.open)
				}
			})
		})
	}
}

// A batch that Redis answered in time, and that a late process expired, is no
// failure. If the process was on time, it is one.
func TestLateBatchIsNoFailure(t *testing.T) {
	server := redistest.Start(t)
	for _, late := range []bool{true, false} {
		client := redistest.Script(server.Client())
		o := (&Options{Deadline: 100 * time.Millisecond}).withDefaults()
		c := newCircuit(o.Deadline)
		t.Cleanup(c.pulse.close)
		r := newRedisLayer(client, &o, c, newReport(o.Logger))
		l := over(r)
		redistest.Until(t, "Redis decides", func() bool {
			_, err := algorithms.Allow(t.Context(), l, "usr=1", ample)
			return err == nil
		})
		client.Set(redistest.HoldReply())
		for n := 0; n < 2*tripAfter && !c.open.Load(); n++ {
			if late {
				c.pulse.missed(monotonic(), monotonic()+time.Hour.Microseconds())
			}
			if _, err := algorithms.Allow(t.Context(), l, "usr=1", ample); !errors.Is(err, errTimeout) && !errors.Is(err, errOpen) {
				t.Fatalf("got %v, want errTimeout", err)
			}
			if !late {
				time.Sleep(3 * o.Deadline) // so that no lateness of this machine excuses it
			}
			client.Release(client.Held())
			redistest.Until(t, "the reply has come", func() bool { return r.underWay() == 0 })
		}
		if open := c.open.Load(); open == late {
			t.Errorf("a process that is late: %v: the circuit is open: %v", late, open)
		}
	}
}

// A late process finds out that Redis is gone, also once so many batches hang that no
// other is begun. Then a Cluster's client learns the slots again.
func TestLateProcessNoticesThatRedisIsGone(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := &reloading{Client: clientOf(t, server.Addr(), func(o *redis.Options) { o.ReadTimeout = time.Minute })}
	limiter := must(t, client, nil)
	redistest.Until(t, "Redis decides", func() bool { return take(t, limiter, "usr=before", ample, 1).Source == algorithms.Shared })
	c := limiter.fallback.circuit
	server.Stop()
	redistest.Until(t, "the circuit opens", func() bool {
		c.pulse.missed(monotonic(), monotonic()+time.Second.Microseconds())
		take(t, limiter, "usr=1", ample, 1)
		return c.open.Load()
	})
	if client.reloads.Load() == 0 {
		t.Error("the client did not learn the slots again")
	}
	server.Continue()
}

// A reloading client counts how often it would ask a Cluster for its slots.
type reloading struct {
	*redis.Client
	reloads atomic.Int64
}

func (r *reloading) ReloadState(context.Context) { r.reloads.Add(1) }
