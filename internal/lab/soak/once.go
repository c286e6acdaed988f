// Promise 6: keys that are used only once, and the units that Redis holds for them.

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/lab/nottest"
)

// A once is one Take or Force of a key that no other call uses. Its limit never
// denies it, and the window of the limit does not roll over. So in the end Redis
// holds exactly the units that were charged to the key.
type once struct {
	key            string
	cost, returned int64
	taken, undone  outcome
}

// An outcome says whether Redis has a charge.
type outcome int

const (
	perhaps outcome = iota // it was sent, but not answered
	surely                 // Redis answered
	owed                   // it was not sent: all circuits were open
)

var onceLimit = algorithms.FixedWindow(1_000, 365*24*time.Hour)

const oncePolicy = "once"

func (c *caller) once() {
	o := &once{key: fmt.Sprintf("usr=once%d-%d", c.id, c.random.Uint64()), cost: 1 + c.random.Int64N(maxCost)}
	c.books.mu.Lock()
	c.books.onces = append(c.books.onces, o)
	c.books.mu.Unlock()
	checks := []algorithms.Check{{Policy: oncePolicy, Key: o.key, Limit: onceLimit, Cost: o.cost}}
	if c.random.IntN(5) == 0 {
		checks[0].Op = algorithms.Force
	}
	o.taken = c.watch(checks)
	if !checks[0].Decision.Allowed {
		c.broken("%v was denied the first time", describe(checks))
	}
	if checks[0].Op == algorithms.Force || o.taken != surely || c.random.IntN(4) > 0 {
		return
	}
	o.returned = 1 + c.random.Int64N(o.cost)
	checks[0].Op, checks[0].Cost = algorithms.Return, o.returned
	o.undone = c.watch(checks) // without Redis, the limiter keeps the return for later
}

// watch makes a call, and returns its outcome.
func (c *caller) watch(checks []algorithms.Check) outcome {
	before := c.in.limiter.Stats().Fallback
	answered := c.ask(checks)
	after := c.in.limiter.Stats().Fallback
	switch {
	case answered && checks[0].Decision.Source == algorithms.Shared:
		return surely
	case before.Open == c.topology.circuits && after.Open == before.Open && before.Trips == after.Trips:
		return owed
	default:
		return perhaps
	}
}

// bounds returns the least and the most that Redis may hold for the key. A charge
// or a return that is not certain widens the bounds. For example, a take of 3 that
// Redis answered, and a return of 2 without an answer, leave 1 to 3.
func (o *once) bounds() (least, most int64) {
	most = o.cost
	if o.taken == surely {
		least = o.cost - o.returned
	}
	if o.undone == surely {
		most = o.cost - o.returned
	}
	return least, most
}

// audit asks Redis how many units it holds for every key. Units that were admitted
// while all circuits were open must be there, except the units that were lost on
// the way.
func (l *leg) audit(lost uint64) {
	client := l.topology.client(nil)
	defer client.Close()
	redis := nottest.Must(shared.New(client, &shared.Options{Deadline: 10 * time.Second}))
	defer redis.Close()
	missing := int64(0)
	for _, o := range l.books.onces {
		checks := []algorithms.Check{{Policy: oncePolicy, Key: o.key, Limit: onceLimit}}
		nottest.Check(redis.Allow(context.Background(), checks))
		missing += l.compare(o, onceLimit.Burst()-checks[0].Decision.Remaining)
	}
	if missing > int64(lost) {
		l.broken("not handed back: %d units that were admitted while all circuits were open; want at most the %d that were lost on the way", missing, lost)
	}
}

// compare checks the units that Redis holds for a key. It returns how many of the
// units that were admitted while all circuits were open are missing.
func (l *leg) compare(o *once, held int64) (missing int64) {
	least, most := o.bounds()
	if held > most {
		l.broken("charged twice: %s took %d and gave back %d; Redis holds %d", o.key, o.cost, o.returned, held)
	}
	if held < least {
		l.broken("not charged: %s took %d and gave back %d; Redis holds %d", o.key, o.cost, o.returned, held)
	}
	if o.taken == owed {
		return max(0, o.cost-held)
	}
	return 0
}
