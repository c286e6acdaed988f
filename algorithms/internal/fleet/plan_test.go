// A plan is everything that a seed decides: the fleet, its traffic, and its
// troubles.

package fleet

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

type plan struct {
	seed      uint64
	instances int
	clients   int
	limit     algorithms.Limit // of each client
	offered   float64          // requests of each client per second
	latency   time.Duration    // of a round trip to Redis
	pool      int              // connections of each instance
	hangUps   float64          // part of all requests

	warmUp, rest time.Duration // before and after the outage
	outage       outage
	deploy       deploy
}

// An outage is trouble of all instances, for some time.
type outage struct {
	trouble trouble
	flaps   bool // it comes for 0.3 s in each second
	loses   bool // Redis has lost its data at the end
	lasts   time.Duration
	apart   time.Duration // between the first and the last instance
}

// A deploy replaces all instances, one after the other.
type deploy struct {
	begins time.Duration // after the outage
	every  time.Duration
	kills  bool
}

func (p *plan) String() string {
	return fmt.Sprintf("seed %d: %d instances, %d clients with %v, each offers %.1f/s, round trip %v, %d connections, %.0f %% hang-ups; outage: %+v; deploy: %+v",
		p.seed, p.instances, p.clients, p.limit, p.offered, p.latency, p.pool, 100*p.hangUps, p.outage, p.deploy)
}

// newPlan draws a plan: clients offer twice their limit, Redis is away for a
// minute, and in the middle of it all instances are replaced.
func newPlan(seed uint64) *plan {
	r := rand.New(rand.NewPCG(seed, 0))
	p := &plan{
		seed:      seed,
		instances: 2 + r.IntN(15),
		clients:   1 + r.IntN(3),
		latency:   time.Duration(200+r.IntN(2_000)) * time.Microsecond,
		pool:      10 + r.IntN(11),
		warmUp:    time.Minute, rest: time.Minute,
	}
	rate := int64(2 + r.IntN(9))
	burst := rate * int64(1+r.IntN(10))
	p.limit = algorithms.TokenBucket(rate, time.Second).WithBurst(burst)
	p.offered = 2 * float64(rate)
	if r.IntN(2) == 0 {
		p.hangUps = 0.02
	}
	p.outage = outage{
		trouble: []trouble{refused, dark, stalled, mute, cut, slow}[r.IntN(6)],
		lasts:   time.Minute,
		flaps:   r.IntN(4) == 0,
		loses:   r.IntN(4) == 0,
		apart:   time.Duration(r.IntN(3)) * time.Second,
	}
	p.deploy = deploy{begins: 10 * time.Second, every: 30 * time.Second / time.Duration(p.instances), kills: r.IntN(2) == 0}
	return p
}
