// Calls that share a script are answered as if each had a script of its own.

package batch

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
	"github.com/penstock-go/penstock/lua"
)

// Calls that follow one another in one script are decided one after the other: takes of
// keys of their own, of one key under several limits, and with trials, in any order.
func TestCallsOfOneScript(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client()
	if err := client.ScriptLoad(t.Context(), lua.Source()).Err(); err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for trace := range 200 {
		together := &sharedScripts{t, client, fmt.Sprintf("together%d", trace)}
		apart := &sharedScripts{t, client, fmt.Sprintf("apart%d", trace)}
		now := time.Now().UnixMicro()
		for range 8 {
			now += r.Int64N(2_000_000)
			calls := make([][]algorithms.Check, 1+r.IntN(6))
			for i := range calls {
				calls[i] = randomChecks(r)
			}
			got := together.decide(now, calls)
			for i, g := range got { // in the order of the script
				alone := apart.decide(now, [][]algorithms.Check{calls[g.call]})[0]
				if g.text != alone.text {
					t.Fatalf("seed %d, group %d, call %v\nin one script with others:\n%sin a script of its own:\n%s",
						seed, i, calls[g.call], g.text, alone.text)
				}
			}
		}
	}
}

// randomChecks returns a call over few keys, so that most calls share some.
func randomChecks(r *rand.Rand) []algorithms.Check {
	limits := []algorithms.Limit{
		algorithms.TokenBucket(5, time.Second), algorithms.TokenBucket(3, time.Second), algorithms.LeakyBucket(4, time.Second),
		algorithms.FixedWindow(6, time.Second), algorithms.FixedWindow(4, 3*time.Second), algorithms.SlidingWindowCounter(5, time.Second),
		algorithms.SlidingWindowLog(5, time.Second), algorithms.SlidingWindowLog(9, 3*time.Second), algorithms.PerDay(20, time.UTC),
	}
	checks := make([]algorithms.Check, 1+r.IntN(4))
	for i := range checks {
		c := &checks[i]
		*c = algorithms.Check{Policy: "calls", Key: fmt.Sprint(r.IntN(3)), Limit: limits[r.IntN(len(limits))], Cost: r.Int64N(3)}
		if i > 0 && r.IntN(4) == 0 {
			c.Policy, c.Op = "trials", []algorithms.Op{algorithms.Trial, algorithms.TrialInstead}[r.IntN(2)]
		}
	}
	checks[0].Cost = 1
	if r.IntN(3) == 0 {
		pair := []algorithms.Check{
			{Policy: "pairs", Key: "0", Limit: limits[r.IntN(len(limits))], Cost: r.Int64N(4)},
			{Policy: "pairs", Key: fmt.Sprint(1 + r.IntN(2)), Limit: limits[r.IntN(2)], Cost: r.Int64N(4)},
		}
		pair[1].Op = []algorithms.Op{algorithms.TakeReserved, algorithms.TakeElse}[r.IntN(2)]
		checks = append(pair, checks...)
	}
	return checks
}

// sharedScripts sends calls as scripts.
type sharedScripts struct {
	*testing.T
	client *redis.Client
	prefix string
}

// A decided group holds the answers to a call.
type decidedGroup struct {
	call int
	text string
}

// decide decides calls in one script, and returns their answers in its order.
func (s *sharedScripts) decide(now int64, calls [][]algorithms.Check) (decided []decidedGroup) {
	s.Helper()
	var one script
	places := make(map[*Group]int)
	for i, checks := range calls {
		g := groupOf(s.T, s.prefix, checks...)
		places[g] = i
		one.groups = append(one.groups, g)
	}
	one.now = now
	one.pack(time.Now().UnixMicro())
	args := []any{"evalsha", lua.Digest, len(one.keys)}
	for i := range one.keys {
		args = append(args, &one.keys[i])
	}
	args = append(args, one.packed, one.takes, now)
	if len(one.checks) > 0 {
		args = append(args, one.checks)
	}
	one.cmd = redis.NewCmd(s.Context(), args...)
	if err := s.client.Process(s.Context(), one.cmd); err != nil {
		s.Fatal(err)
	}
	reply, err := one.cmd.Result()
	if err == nil {
		err = one.read(reply)
	}
	if err != nil {
		s.Fatal(err)
	}
	for _, g := range one.groups {
		d := decidedGroup{call: places[g]}
		for _, it := range g.Items {
			it.Answer.Missing = false // a log that has ended is still known to its script
			d.text += fmt.Sprintf("\t%+v\n", it.Answer)
		}
		decided = append(decided, d)
	}
	return decided
}
