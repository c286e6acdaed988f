// A run plays a plan, in the time of a synctest bubble.

package fleet

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"
)

// A run is a fleet and its server.
type run struct {
	*plan
	server *server
	books  *books
	random *rand.Rand // of the traffic
	sent   int        // requests

	mu      sync.Mutex // guards the fields below
	slots   []*slot
	started int         // instances, so far
	retired []*instance // in this episode
}

// A slot is the place of an instance in the fleet. A deploy puts another instance
// there.
type slot struct {
	trouble  trouble
	instance *instance // nil while it is being replaced
	busy     sync.WaitGroup
}

// A stage is an episode as it happens.
type stage struct {
	*episode
	began       time.Time
	from, until time.Time // the outage, of the first and of the last instance
	ended       time.Time // the traffic
}

// play plays a plan, and judges each episode.
func play(t *testing.T, p *plan) {
	r := &run{plan: p, books: newBooks(), random: rand.New(rand.NewPCG(p.seed, 1))}
	r.server = newServer(r.books.charge)
	time.Sleep(time.Duration(r.random.Int64N(int64(time.Hour)))) // to any place in windows of the clock
	for range p.instances {
		s := new(slot)
		r.slots = append(r.slots, s)
		r.join(s)
	}
	time.Sleep(6 * time.Second) // each instance knows of all
	for i := range p.episodes {
		st := r.live(&p.episodes[i])
		time.Sleep(20 * time.Second) // late replies, and hand-backs
		r.judge(t, st)
		r.books.begin()
		r.retired = nil
	}
	for _, s := range r.slots {
		s.instance.stop()
	}
}

// live lets an episode happen.
func (r *run) live(e *episode) *stage {
	st := &stage{episode: e, began: time.Now()}
	st.from = st.began.Add(e.warmUp)
	st.until = st.from.Add(e.outage.lasts + e.outage.apart)
	st.ended = st.until.Add(e.rest)
	var parts sync.WaitGroup
	parts.Go(func() { r.afflict(st) })
	parts.Go(func() { r.redeploy(st) })
	parts.Go(func() { r.drive(st) })
	parts.Wait()
	return st
}

// join puts a new instance into a slot.
func (r *run) join(s *slot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := newLink(r.server, r.latency, rand.New(rand.NewPCG(r.seed, uint64(2+r.started))))
	r.started++
	l.meets(s.trouble)
	s.instance = start(l, r.instances, r.plan)
}

// afflict makes the outage.
func (r *run) afflict(st *stage) {
	o := st.outage
	var all sync.WaitGroup
	for i, s := range r.slots {
		all.Go(func() {
			time.Sleep(time.Until(st.from) + o.apart*time.Duration(i)/time.Duration(len(r.slots)))
			for left := o.lasts; left > 0; left -= time.Second {
				r.meets(s, o.trouble)
				if !o.flaps {
					time.Sleep(left)
					break
				}
				time.Sleep(300 * time.Millisecond)
				r.meets(s, none)
				time.Sleep(700 * time.Millisecond)
			}
			if i == 0 && o.loses {
				r.server.lose()
			}
			r.meets(s, none)
		})
	}
	all.Wait()
}

func (r *run) meets(s *slot, t trouble) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.trouble = t; s.instance != nil {
		s.instance.link.meets(t)
	}
}

// redeploy replaces all instances, one after the other.
func (r *run) redeploy(st *stage) {
	time.Sleep(time.Until(st.from) + st.deploy.begins)
	for _, s := range r.slots {
		r.mu.Lock()
		in := s.instance
		s.instance = nil // it receives no more requests
		r.retired = append(r.retired, in)
		r.mu.Unlock()
		if st.deploy.kills {
			in.link.dies()
		}
		s.busy.Wait()
		in.stop()
		time.Sleep(st.deploy.every / 2)
		r.join(s)
		time.Sleep(st.deploy.every / 2)
	}
}

// drive sends requests at random, as a Poisson process. Before an outage, fleets that admit ahead also
// meet crowds: each client sends a whole burst at one instant.
func (r *run) drive(st *stage) {
	var requests sync.WaitGroup
	defer requests.Wait()
	perSecond := r.offered * float64(r.clients)
	for {
		time.Sleep(time.Duration(r.random.ExpFloat64() / perSecond * float64(time.Second)))
		if !time.Now().Before(st.ended) {
			return
		}
		times := 1
		if r.ahead > 0 && time.Now().Before(st.from) && r.random.IntN(100) == 0 {
			times = r.clients * int(r.limit.Burst())
		}
		for range times {
			rec := r.draw()
			if s := r.pick(rec); s != nil {
				r.books.add(rec)
				requests.Go(func() {
					defer s.busy.Done()
					rec.send()
				})
			}
		}
	}
}

// draw returns the next request.
func (r *run) draw() *record {
	r.sent++
	rec := &record{
		id: strconv.Itoa(r.sent), client: r.random.IntN(r.clients), path: pathOrders, began: time.Now(),
		lasts: time.Duration(r.random.Int64N(int64(50 * time.Millisecond))), tokens: r.random.Int64N(2 * reserved),
	}
	switch r.random.IntN(5) {
	case 0:
		rec.path = pathLogin
	case 1:
		rec.path = pathTokens
	}
	if r.random.Float64() < r.hangUps {
		rec.hangsUp = time.Duration(r.random.Int64N(int64(60 * time.Millisecond)))
	}
	return rec
}

// pick chooses an instance for a request, which then counts as under way in the
// instance's slot. It returns nil if there is none.
func (r *run) pick(rec *record) *slot {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.random.IntN(len(r.slots))
	for i := range r.slots {
		if s := r.slots[(first+i)%len(r.slots)]; s.instance != nil {
			s.busy.Add(1)
			rec.instance = s.instance
			return s
		}
	}
	return nil
}

// send sends the request to its instance.
func (rec *record) send() {
	ctx := context.WithValue(context.Background(), recordKey{}, rec)
	if rec.hangsUp > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, rec.hangsUp)
		defer cancel()
	}
	req := httptest.NewRequestWithContext(ctx, http.MethodGet, rec.path, http.NoBody)
	req.Header.Set(headerClient, strconv.Itoa(rec.client))
	req.Header.Set(headerRequest, rec.id)
	w := httptest.NewRecorder()
	rec.instance.handler.ServeHTTP(w, req)
	rec.status, rec.ended = w.Code, time.Now()
}
