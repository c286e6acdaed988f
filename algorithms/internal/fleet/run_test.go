// A run plays a plan, in the time of a synctest bubble.

package fleet

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"time"
)

// A run is a fleet, its server, and its books.
type run struct {
	*plan
	*books
	server      *server
	random      *rand.Rand // of the traffic
	began       time.Time
	ended       time.Time
	from, until time.Time // the outage, of the first and of the last instance

	mu      sync.Mutex // guards the fields below
	slots   []*slot
	retired []*instance
}

// A slot is the place of an instance in the fleet. A deploy puts another instance
// there.
type slot struct {
	trouble  trouble
	instance *instance // nil while it is being replaced
	busy     sync.WaitGroup
}

func play(p *plan) *run {
	r := &run{plan: p, books: newBooks(), random: rand.New(rand.NewPCG(p.seed, 1))}
	r.server = newServer(r.charge)
	time.Sleep(time.Duration(r.random.Int64N(int64(time.Hour)))) // to any place in windows of the clock
	for range p.instances {
		s := new(slot)
		r.slots = append(r.slots, s)
		r.join(s)
	}
	time.Sleep(6 * time.Second) // each instance knows of all
	r.began = time.Now()
	r.from = r.began.Add(p.warmUp)
	r.until = r.from.Add(p.outage.lasts + p.outage.apart)
	var parts sync.WaitGroup
	parts.Go(r.afflict)
	parts.Go(r.redeploy)
	parts.Go(r.drive)
	parts.Wait()
	r.ended = time.Now()
	time.Sleep(20 * time.Second) // late replies, and hand-backs
	for _, s := range r.slots {
		s.instance.stop()
	}
	return r
}

// join puts a new instance into a slot.
func (r *run) join(s *slot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := newLink(r.server, r.latency, rand.New(rand.NewPCG(r.seed, uint64(2+len(r.retired)+len(r.slots)))))
	l.meets(s.trouble)
	s.instance = start(l, r.instances, r.plan)
}

// afflict makes the outage.
func (r *run) afflict() {
	o := r.outage
	var all sync.WaitGroup
	for i, s := range r.slots {
		all.Go(func() {
			time.Sleep(time.Until(r.from) + o.apart*time.Duration(i)/time.Duration(len(r.slots)))
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
func (r *run) redeploy() {
	time.Sleep(time.Until(r.from) + r.deploy.begins)
	for _, s := range r.slots {
		r.mu.Lock()
		in := s.instance
		s.instance = nil // it receives no more requests
		r.retired = append(r.retired, in)
		r.mu.Unlock()
		if r.deploy.kills {
			in.link.dies()
		}
		s.busy.Wait()
		in.stop()
		time.Sleep(r.deploy.every / 2)
		r.join(s)
		time.Sleep(r.deploy.every / 2)
	}
}

// drive sends requests at random, as a Poisson process.
func (r *run) drive() {
	var requests sync.WaitGroup
	defer requests.Wait()
	perSecond := r.offered * float64(r.clients)
	end := r.until.Add(r.rest)
	for n := 0; ; n++ {
		time.Sleep(time.Duration(r.random.ExpFloat64() / perSecond * float64(time.Second)))
		if !time.Now().Before(end) {
			return
		}
		rec := r.draw(n)
		if s := r.pick(rec); s != nil {
			r.add(rec)
			requests.Go(func() {
				defer s.busy.Done()
				rec.send()
			})
		}
	}
}

// draw returns the n-th request.
func (r *run) draw(n int) *record {
	rec := &record{
		id: strconv.Itoa(n), client: r.random.IntN(r.clients), path: pathOrders, began: time.Now(),
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
