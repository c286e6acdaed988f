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
	request   algorithms.Limit // of each request; it refills too slowly to hide a charge
	ahead     int              // per cent of each burst
	offered   float64          // requests of each client per second
	latency   time.Duration    // of a round trip to Redis
	pool      int              // connections of each instance
	hangUps   float64          // part of all requests
	episodes  []episode
}

// An episode is an outage and a rolling deploy, with quiet before and after.
type episode struct {
	warmUp, rest time.Duration
	outage       outage
	deploy       deploy
}

// An outage is trouble of all instances, for some time.
type outage struct {
	trouble trouble
	flaps   bool // the trouble comes for 0.3 s in each second
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
	return fmt.Sprintf("seed %d: %d instances; %d clients with %v, ahead %d %%, offer %.1f/s each; round trip %v, %d connections, %.0f %% hang-ups",
		p.seed, p.instances, p.clients, p.limit, p.ahead, p.offered, p.latency, p.pool, 100*p.hangUps)
}

func (e *episode) String() string {
	return fmt.Sprintf("outage %+v, deploy %+v", e.outage, e.deploy)
}

// newPlan draws a plan of one episode. Clients offer twice their limit, Redis is
// away for a minute, and in the middle of it all instances are replaced.
func newPlan(seed uint64) *plan {
	r := rand.New(rand.NewPCG(seed, 0))
	rate := 2 + r.IntN(9)
	p := &plan{
		seed:      seed,
		instances: 2 + r.IntN(15),
		clients:   1 + r.IntN(3),
		limit:     algorithms.TokenBucket(int64(rate), time.Second).WithBurst(int64(rate * (1 + r.IntN(10)))),
		request:   algorithms.TokenBucket(10, 10*time.Hour),
		offered:   2 * float64(rate),
		latency:   time.Duration(200+r.IntN(2_000)) * time.Microsecond,
		pool:      10 + r.IntN(11),
		hangUps:   0.02 * float64(r.IntN(2)),
	}
	p.episodes = []episode{newEpisode(r, seed, p.instances, 3*time.Minute)}
	return p
}

// goAhead lets a plan admit ahead. It enlarges the bursts: each instance has an allowance of
// two units of a client at least, and room for the tokens of a request.
func (p *plan) goAhead() *plan {
	p.ahead = 25
	p.limit = p.limit.WithBurst(max(p.limit.Burst(), 8*int64(p.instances)))
	p.request = p.request.WithBurst(1_000)
	return p
}

// newDay draws the plan of a day, or of a part of it. Eight instances receive 20
// requests per second in all. Each hour has an episode.
func newDay(seed uint64, lasts time.Duration) *plan {
	r := rand.New(rand.NewPCG(seed, 0))
	p := &plan{
		seed: seed, instances: 8, clients: 2,
		limit: algorithms.TokenBucket(5, time.Second).WithBurst(25), offered: 10,
		request: algorithms.TokenBucket(10, 10*time.Hour),
		latency: time.Millisecond, pool: 10, hangUps: 0.01,
	}
	for ; lasts > 0; lasts -= time.Hour {
		n := seed + uint64(len(p.episodes))
		p.episodes = append(p.episodes, newEpisode(r, n, p.instances, min(lasts, time.Hour)))
	}
	return p
}

// newEpisode draws the n-th episode. Twelve episodes in a row have each trouble
// twice: once for the whole outage, and once so that it comes and goes.
func newEpisode(r *rand.Rand, n uint64, instances int, lasts time.Duration) episode {
	o := outage{
		trouble: troubles[n%uint64(len(troubles))],
		lasts:   time.Minute,
		flaps:   n/uint64(len(troubles))%2 == 1,
		loses:   r.IntN(4) == 0,
		apart:   time.Duration(r.IntN(3)) * time.Second,
	}
	return episode{
		warmUp: (lasts - o.lasts) / 2, rest: (lasts - o.lasts) / 2, outage: o,
		deploy: deploy{begins: 15 * time.Second, every: 30 * time.Second / time.Duration(instances), kills: r.IntN(2) == 0},
	}
}
