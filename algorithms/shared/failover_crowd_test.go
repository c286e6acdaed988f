// A crowd of callers while a test changes masters, and the wanted answers.

package shared

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

const (
	crowdSize = 8                    // callers
	pace      = 4 * time.Millisecond // between the rounds of a caller

	scarceEvery = time.Minute // longer than an outage, so denials are remembered until its end

	// A busy machine is no outage, and calls that Redis refuses late may have been charged.
	crowdDeadline = 300 * time.Millisecond
)

var (
	counted = algorithms.FixedWindow(1_000_000, 24*time.Hour)
	scarce  = algorithms.TokenBucket(1, scarceEvery).WithBurst(40)
)

// A crowd is callers who ask a limiter about some keys while a test changes
// masters. Each asks three times per round: for a limit that counts the calls,
// for a limit that denies most, and for a limit that fails closed.
type crowd struct {
	t       *testing.T
	limiter *Limiter
	keys    []string
	began   time.Time
	stop    chan struct{}
	done    sync.WaitGroup

	mu      sync.Mutex
	answers []answered
}

type answered struct {
	at          time.Time
	key, policy string
	algorithms.Decision
	err error
}

func newCrowd(t *testing.T, client Client, keys ...string) *crowd {
	t.Helper()
	c := &crowd{t: t, keys: keys, began: time.Now(), stop: make(chan struct{})}
	c.limiter = must(t, client, &Options{Deadline: crowdDeadline})
	for i := range crowdSize {
		c.done.Go(func() { c.ask(i) })
	}
	return c
}

// awaitScarce waits until the limiter remembers that Redis has denied each key.
// Otherwise a key would be full in the outage. An answer that admitted may
// overtake a denial, so each caller is denied after the last of them.
func (c *crowd) awaitScarce() {
	c.t.Helper()
	redistest.Until(c.t, "every key was denied", func() bool {
		admitted, denied := make(map[string]int64), make(map[string]int)
		for _, a := range c.all() {
			switch {
			case a.policy != "scarce":
			case a.Allowed:
				admitted[a.key]++
				denied[a.key] = 0
			case isShared(a):
				denied[a.key]++
			}
		}
		return !slices.ContainsFunc(c.keys, func(key string) bool {
			return admitted[key] < scarce.Burst() || denied[key] <= crowdSize
		})
	})
}

func (c *crowd) ask(i int) {
	round := time.NewTicker(pace)
	defer round.Stop()
	for ; ; i++ {
		select {
		case <-c.stop:
			return
		case <-round.C:
		}
		for _, check := range []algorithms.Check{
			{Policy: "counted", Limit: counted},
			{Policy: "scarce", Limit: scarce},
			{Policy: "closed", Limit: counted, Fail: algorithms.FailClosed},
		} {
			check.Key, check.Cost = c.keys[i%len(c.keys)], 1
			checks := [1]algorithms.Check{check}
			err := c.limiter.Allow(context.Background(), checks[:])
			c.note(answered{time.Now(), check.Key, check.Policy, checks[0].Decision, err})
		}
	}
}

func (c *crowd) note(a answered) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers = append(c.answers, a)
}

// awaitShared waits until Redis has decided again for a while about all of these
// keys. It returns since when.
func (c *crowd) awaitShared(after time.Time, keys []string) (since time.Time) {
	c.t.Helper()
	redistest.Until(c.t, "Redis decides about every key", func() bool {
		first := make(map[string]time.Time) // of the shared ones in a row
		for _, a := range c.all() {
			switch {
			case a.policy != "counted" || a.at.Before(after) || !slices.Contains(keys, a.key):
			case a.Source != algorithms.Shared:
				delete(first, a.key)
			case first[a.key].IsZero():
				first[a.key] = a.at
			}
		}
		since = time.Time{}
		for _, at := range first {
			if at.After(since) {
				since = at
			}
		}
		return len(first) == len(keys) && time.Since(since) > 300*time.Millisecond
	})
	return since
}

// leave ends the calls, and waits until Redis has received all hand-backs.
func (c *crowd) leave() {
	c.t.Helper()
	close(c.stop)
	c.done.Wait()
	redistest.Until(c.t, "the circuit is closed and nothing is owed", func() bool {
		s := c.limiter.Stats().Fallback
		return s.Open == 0 && s.Owed == 0
	})
}

func (c *crowd) all() []answered {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.answers)
}

// count returns how many answers of a policy satisfy a condition.
func (c *crowd) count(policy string, like func(a answered) bool) (n int64) {
	for _, a := range c.all() {
		if a.policy == policy && like(a) {
			n++
		}
	}
	return n
}

// failed returns how many scripts have failed for a reason.
func (c *crowd) failed(reason string) int { return int(c.limiter.Stats().Redis.Errors[reason]) }

// known returns how many units of the counted limit a limiter holds against some
// keys.
func (c *crowd) known(l algorithms.Limiter, keys []string) (units int64) {
	c.t.Helper()
	for _, key := range keys {
		checks := []algorithms.Check{{Policy: "counted", Key: key, Limit: counted}}
		if err := l.Allow(c.t.Context(), checks); err != nil {
			c.t.Fatal(err)
		}
		units += counted.Burst() - checks[0].Decision.Remaining
	}
	return units
}

// wantServed wants errors only of calls that fail closed. It wants no key to get
// more of the scarce limit than the limit admits, one call of each caller that was
// under way, and so many more.
func (c *crowd) wantServed(more int64) {
	c.t.Helper()
	for _, a := range c.all() {
		if a.err != nil && (a.policy != "closed" || !errors.Is(a.err, algorithms.ErrUnavailable)) {
			c.t.Fatalf("%s: got error %v after %v", a.policy, a.err, a.at.Sub(c.began))
		}
	}
	most := scarce.Burst() + int64(time.Since(c.began)/scarceEvery) + crowdSize + more
	if c.limiter.Stats().Fallback.Lost > 0 {
		most += scarce.Burst() // a hand-back failed, so Redis has a burst for it
	}
	var worst int64
	for _, key := range c.keys {
		worst = max(worst, c.count("scarce", func(a answered) bool { return a.key == key && a.Allowed }))
	}
	if worst > most {
		c.t.Errorf("got %d admitted of a key, want at most %d", worst, most)
	}
	c.t.Logf("%d calls; of a scarce key %d admitted, want at most %d", len(c.all()), worst, most)
}

// wantOutage wants some calls without Redis, or the test shows nothing.
func (c *crowd) wantOutage() {
	c.t.Helper()
	refused := c.count("closed", func(a answered) bool { return a.err != nil })
	local := c.count("counted", isLocal)
	if c.t.Logf("%d refused, %d of the counted decided locally", refused, local); refused == 0 || local == 0 {
		c.t.Errorf("got %d calls refused and %d decided locally, want some", refused, local)
	}
}

func isAdmitted(a answered) bool { return a.Allowed }
func isLocal(a answered) bool    { return a.Source == algorithms.Local }
func isShared(a answered) bool   { return a.Source == algorithms.Shared }

// wantLost wants no charge made twice. It wants no more charges lost than the lagging ones, one of each caller that the
// dead master reported late, and the units that are unknown or lost.
func (c *crowd) wantLost(lagged int64) (lost int64) {
	c.t.Helper()
	lagged = max(0, lagged) + crowdSize
	s := c.limiter.Stats().Fallback
	if lost = c.lost(); lost < 0 || lost > lagged+int64(s.Lost)+s.Unknown {
		c.t.Errorf("got %d charges lost, want at most %d of the lag: %+v", lost, lagged, s)
	}
	return lost
}

// lost returns how many admitted units of the counted limit Redis does not hold.
func (c *crowd) lost() (units int64) {
	c.t.Helper()
	admitted := c.count("counted", isAdmitted)
	units = admitted - c.known(c.limiter, c.keys)
	c.t.Logf("%d charges lost of %d: %+v", units, admitted, c.limiter.Stats().Fallback)
	return units
}
