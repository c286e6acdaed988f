// The crowd: clients, arrivals in the order of time, and the server.

package main

import (
	"container/heap"
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/client"
)

const (
	rate  = 10                    // requests per second
	least = 2 * time.Millisecond  // time of a round trip
	most  = 20 * time.Millisecond // time of a round trip
)

// A setting says how many clients there are, and how many successes each wants.
type setting struct {
	name    string
	title   string
	clients int
	wants   int           // successes of each client
	within  time.Duration // the time in which all clients begin
}

// ideal returns how long the rate of the limit takes to admit all successes.
func (s setting) ideal() time.Duration {
	return time.Duration(s.clients*s.wants) * time.Second / rate
}

// A kind is a kind of Retry-After, and the clients that read it.
type kind struct {
	name    string
	spread  bool // the server gives slots
	account bool // the clients are workers of one account; spread, too
	client  behaviour

	transport *client.Options // the clients are Transports with these options, and client is nil

	instances int // of the server; 0 means 1
}

// A result sums up the requests of a crowd.
type result struct {
	kind     string
	requests int
	served   int
	done     time.Duration // when the last success arrived
	seconds  []int         // requests in each second
	failed   error         // the errors of clients that gave up
}

func (r *result) denied() int { return r.requests - r.served }

func (r *result) perSuccess(n int) float64 { return float64(n) / float64(r.served) }

// peak returns the most requests in any second except the first.
func (r *result) peak() int {
	most := 0
	for _, requests := range r.seconds[min(1, len(r.seconds)):] {
		most = max(most, requests)
	}
	return most
}

// count counts an arrival.
func (r *result) count(at time.Duration, served bool) {
	for len(r.seconds) <= int(at/time.Second) {
		r.seconds = append(r.seconds, 0)
	}
	r.seconds[at/time.Second]++
	r.requests++
	if served {
		r.served++
		r.done = max(r.done, at)
	}
}

// A visitor is one client of a crowd.
type visitor struct {
	number int
	at     time.Duration // when its next request arrives
	tries  int           // denials in a row
	wants  int
	random *rand.Rand
}

func (v *visitor) draw(n time.Duration) time.Duration {
	if n <= 0 {
		return 0
	}
	return time.Duration(v.random.Int64N(int64(n)))
}

func newVisitor(number, wants int, seed uint64) *visitor {
	return &visitor{number: number, wants: wants, random: rand.New(rand.NewPCG(seed, uint64(number)))}
}

// trip returns the time of a round trip.
func (v *visitor) trip() time.Duration { return least + v.draw(most-least) }

// A queue is a heap of visitors by their next arrivals.
type queue []*visitor

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].number < q[j].number
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(v any)   { *q = append(*q, v.(*visitor)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// run lets a crowd of one kind try until each client has all its successes. It must
// run in a bubble of synctest.
func (s setting) run(k kind, seed uint64) result {
	if k.transport != nil {
		return s.drive(k, seed)
	}
	server, r, begin := newServer(k), result{kind: k.name}, time.Now()
	var arrivals queue
	for i := range s.clients {
		v := newVisitor(i, s.wants, seed)
		v.at = v.draw(s.within)
		heap.Push(&arrivals, v)
	}
	for len(arrivals) > 0 {
		v := arrivals[0]
		time.Sleep(time.Until(begin.Add(v.at)))
		w := server.ask(v)
		served := w.Code == http.StatusOK
		r.count(v.at, served)
		if served {
			v.wants, v.tries = v.wants-1, 0
		}
		if v.wants == 0 {
			heap.Pop(&arrivals)
			continue
		}
		v.at += v.trip()
		if !served {
			v.tries++
			v.at += k.client(hintOf(w), v.tries, v.draw)
		}
		heap.Fix(&arrivals, 0)
	}
	return r
}

// A server has one handler per instance. The instances count together.
type server []http.Handler

// newServer returns a server whose limit all clients share. The limit is advertised,
// because clients that pace themselves must see it.
func newServer(k kind) (all server) {
	limit := algorithms.TokenBucket(rate, time.Second)
	limiter := counted{algorithms.NewMemory(nil), max(1, k.instances)}
	o := &ratelimit.Options{Headers: headers.Draft, Logger: slog.New(slog.DiscardHandler)}
	p := ratelimit.Policy{Name: "all", Key: keyfunc.Const("all"), Limit: limit}
	if !k.spread { // a hidden policy of one client tells the honest wait
		p.Key, p.Hidden = oneClient, true
	}
	if k.account {
		p.Key = oneClient
	}
	for range limiter.instances {
		m := ratelimit.Must(ratelimit.New(limiter, o, p))
		all = append(all, m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	}
	return all
}

// oneClient counts all clients as one: they are the workers of one account.
var oneClient = keyfunc.Custom("client", func(*http.Request) (string, error) { return "all", nil })

// counted makes a Memory the limiter of several instances.
type counted struct {
	*algorithms.Memory
	instances int
}

func (c counted) Stats() algorithms.Stats {
	s := c.Memory.Stats()
	s.Fallback.Instances = c.instances
	return s
}

// Allow decides as Redis would.
func (c counted) Allow(ctx context.Context, checks []algorithms.Check) error {
	err := c.Memory.Allow(ctx, checks)
	for i := range checks {
		checks[i].Decision.Source = algorithms.Shared
	}
	return err
}

// ask sends one request of a client to a random instance.
func (s server) ask(v *visitor) *httptest.ResponseRecorder {
	instance := 0
	if len(s) > 1 {
		instance = v.random.IntN(len(s))
	}
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(v.number >> 8), byte(v.number)}), 1234).String()
	s[instance].ServeHTTP(w, r)
	return w
}
