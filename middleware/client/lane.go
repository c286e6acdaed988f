package client

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/headers"
)

const (
	maxLanes  = 1_000 // A lane takes about 400 bytes, and a line 300.
	maxRoutes = 100   // of one lane, with a line of their own
)

// A lane has the lines of one origin and partition: one for all routes, and one for each route whose limit is its own.
type lane struct {
	key   string // also the limiter's
	users int    // guarded by Transport.mu

	units atomic.Uint64 // of Options.Limiter that have come back

	mu      sync.Mutex // guards the lines, too
	tickets uint64
	all     line
	routes  map[string]*line
}

// use returns the lane of a request, for the caller to put back.
func (t *Transport) use(req *http.Request) *lane {
	key := "origin=" + origin(req.URL)
	if t.o.Partition != nil {
		if partition := t.o.Partition(req); partition != "" {
			// The key may be stored in Redis, and the partition may be a secret.
			sum := sha256.Sum256([]byte(partition))
			key += "|" + base64.RawURLEncoding.EncodeToString(sum[:16])
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	l, ok := t.lanes[key]
	if !ok {
		l = &lane{key: key, all: line{pace: newPace(t.o.MaxWait, t.o.Pace)}, routes: map[string]*line{}}
		if len(t.lanes) >= maxLanes {
			maps.DeleteFunc(t.lanes, func(_ string, l *lane) bool { return l.idle() })
		}
		if len(t.lanes) < maxLanes { // otherwise its requests wait alone
			t.lanes[key] = l
		}
	}
	l.users++
	return l
}

// put ends a use of a lane.
func (t *Transport) put(l *lane) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l.users--
	l.idle()
}

// idle reports whether nothing uses a lane, and nothing in it is held. Routes that are not held join the others. It
// requires Transport.mu.
func (l *lane) idle() bool {
	if l.users > 0 {
		return false
	}
	l.mu.Lock() // a body may be closed after the last use
	defer l.mu.Unlock()
	maps.DeleteFunc(l.routes, func(_ string, q *line) bool { return q.delay(time.Now()) == 0 })
	return len(l.routes) == 0 && l.all.delay(time.Now()) == 0
}

// origin returns the origin of a URL (RFC 6454), without a default port.
func origin(u *url.URL) string {
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	return scheme + "://" + strings.TrimSuffix(host, map[string]string{"http": ":80", "https": ":443"}[scheme])
}

// ids are the segments of a path that have a digit. They are likely IDs.
var ids = regexp.MustCompile(`[^/]*[0-9][^/]*`)

// routeOf returns the method and the path of a request, without IDs.
func routeOf(req *http.Request) string {
	return cmp.Or(req.Method, http.MethodGet) + " " + ids.ReplaceAllString(req.URL.Path, "*")
}

// A line is the queue of requests that share a limit, as far as the responses show, and its pace. Only the first in the
// queue watches the pace and asks the limiter; when it leaves, it wakes the next. So requests leave in the order of
// arrival, and no goroutine serves the queue. A denied request has the ticket of its arrival, so it goes before the
// requests that arrived later. While the line is held, a request of a route that was not denied may leave as a trial.
type line struct {
	pace
	queue []*waiter // in the order of tickets
}

// A waiter is a request. wake has room for one signal: its place, the pace or the limiter has changed. lane.mu guards
// ticket.
type waiter struct {
	route  string
	ticket uint64
	wake   chan struct{}

	ask  time.Time // the limiter has no unit before, or serves the request then
	seen uint64    // lane.units at that question
}

// lineOf returns the line of a request. It requires mu, as all methods of lines do.
func (l *lane) lineOf(w *waiter) *line {
	if own, ok := l.routes[w.route]; ok {
		return own
	}
	return &l.all
}

// place returns the number of requests that are queued before w, and whether w is queued, too. A request without a ticket is
// behind all.
func (q *line) place(w *waiter) (place int, queued bool) {
	if w.ticket == 0 {
		return len(q.queue), false
	}
	return slices.BinarySearchFunc(q.queue, w.ticket, func(other *waiter, ticket uint64) int {
		return cmp.Compare(other.ticket, ticket)
	})
}

// next returns the request that may try although the line is held, otherwise the first. It requires a queue that is not empty.
func (q *line) next(now time.Time) *waiter {
	i := slices.IndexFunc(q.queue, func(w *waiter) bool { return q.mayTry(w.route, now) })
	return q.queue[max(i, 0)]
}

// wake wakes the requests that may leave next.
func (q *line) wake(now time.Time) {
	if len(q.queue) == 0 {
		return
	}
	for _, w := range []*waiter{q.queue[0], q.next(now)} {
		select {
		case w.wake <- struct{}{}:
		default: // it is awake
		}
	}
}

// join lets a request queue, at the place of its ticket. A request without one gets the last.
func (l *lane) join(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.ticket == 0 {
		l.tickets++
		w.ticket = l.tickets
	}
	q := l.lineOf(w)
	if place, queued := q.place(w); !queued {
		q.queue = slices.Insert(q.queue, place, w)
	}
}

// leave removes a request from the queue, and notes its departure if it is sent.
func (l *lane) leave(w *waiter, sent bool) (turn uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q, now := l.lineOf(w), time.Now()
	place, queued := q.place(w)
	if !queued {
		return 0
	}
	q.queue = slices.Delete(q.queue, place, place+1)
	if sent {
		turn = q.depart(now)
	}
	q.wake(now)
	return turn
}

// learn notes the response to a turn; nil means that there was none. A turn of 0 is no turn. It reports whether a denial
// holds the line of the request.
func (l *lane) learn(w *waiter, turn uint64, v *verdict, now time.Time) (held bool) {
	if turn == 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.lineOf(w)
	defer q.wake(now)
	if v != nil && !v.denied && q.tried(turn, now) {
		if !q.mayTry(w.route, now) {
			q.until, q.routes = time.Time{}, nil
		} else if len(l.routes)+len(q.routes) <= maxRoutes {
			l.split(now)
		}
	}
	return q.learn(turn, w.route, v, rand.Float64(), now)
}

// split gives each denied route a line of its own, because another route has succeeded. The others are as free as before
// their first denial.
func (l *lane) split(now time.Time) {
	shared := l.all
	l.all = line{pace: shared.renewed()}
	for route, until := range shared.routes {
		own := &line{pace: shared.pace}
		own.until, own.routes = until, map[string]time.Time{route: until}
		l.routes[route] = own
	}
	for _, w := range shared.queue {
		q := l.lineOf(w)
		q.queue = append(q.queue, w)
	}
	l.wake(now)
}

// wake wakes the requests of all lines that may leave next.
func (l *lane) wake(now time.Time) {
	l.all.wake(now)
	for _, own := range l.routes {
		own.wake(now)
	}
}

// returned lets the first requests ask the limiter, because a unit has come back.
func (l *lane) returned() {
	l.units.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wake(time.Now())
}

// An outlook is what a request knows of its line.
type outlook struct {
	sleep time.Duration // until a change that wakes it; 0: it may ask the limiter, and leave
	least time.Duration // that it waits
	held  time.Duration // for which no request of its route leaves
	dead  time.Duration // for which each response was a 5xx without a wait
	most  time.Duration // of a backoff that does not hold the others
}

// look returns the outlook of a request that is queued, or that queues now.
func (l *lane) look(w *waiter) outlook {
	l.mu.Lock()
	defer l.mu.Unlock()
	q, now := l.lineOf(w), time.Now()
	place, _ := q.place(w)
	least := q.behind(place, now)
	o := outlook{least, least, max(q.routes[w.route].Sub(now), 0), 0, backoffCap}
	switch {
	case place > 0:
		o.sleep = headers.Never
	case least == 0 && !q.open(now):
		o.sleep = q.slow(now)
	}
	if q.mayTry(w.route, now) {
		pause := max(q.tryAt.Sub(now), 0)
		if w == q.next(now) {
			o.sleep = min(o.sleep, pause)
		}
		if o.least = min(least, pause); q.trying {
			o.least = 0
		}
	}
	if now.Sub(q.succeeded) < aliveCap {
		o.most = aliveCap
	}
	if !q.dead.IsZero() {
		o.dead = now.Sub(q.dead)
	}
	return o
}
