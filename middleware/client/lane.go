package client

import (
	"cmp"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/penstock-go/penstock/headers"
)

// maxLanes bounds the table. A lane takes about 200 bytes.
const maxLanes = 1_000

// lanes are the lanes of the origins and partitions that requests use.
type lanes struct {
	mu    sync.Mutex
	byKey map[string]*lane
}

// A lane is the queue of one origin and partition, and its pace. Only the first in the queue watches the pace and asks
// the limiter; when it leaves, it wakes the next. So requests leave in the order of arrival, and no goroutine serves
// the queue. A denied request has the ticket of its arrival, so it goes before the requests that arrived later.
type lane struct {
	key   string // also the limiter's
	users int    // guarded by lanes.mu

	mu      sync.Mutex
	tickets uint64
	queue   []*waiter // in the order of tickets
	pace    pace
}

// A waiter is a request. wake has room for one signal: its place, the pace or the limiter has changed. lane.mu guards
// the other fields.
type waiter struct {
	ticket uint64
	queued bool
	joined time.Time
	wake   chan struct{}

	ask      time.Time // the limiter has no unit before
	returned bool      // a unit has come back since the request asked
}

// use returns the lane of a request, for the caller to put back.
func (t *Transport) use(req *http.Request) *lane {
	key := "origin=" + origin(req.URL)
	if t.o.Partition != nil {
		if partition := t.o.Partition(req); partition != "" {
			key += "|" + partition
		}
	}
	t.lanes.mu.Lock()
	defer t.lanes.mu.Unlock()
	l, ok := t.lanes.byKey[key]
	if !ok {
		l = &lane{key: key, pace: newPace(t.o.MaxWait, t.o.Pace)}
		t.lanes.add(l)
	}
	l.users++
	return l
}

// retain adds a use of a lane that is in use.
func (ls *lanes) retain(l *lane) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l.users++
}

// add adds a lane if there is room. Otherwise its request waits alone. It requires mu.
func (ls *lanes) add(l *lane) {
	if ls.byKey == nil {
		ls.byKey = make(map[string]*lane)
	}
	if len(ls.byKey) >= maxLanes {
		now := time.Now()
		for key, idle := range ls.byKey {
			if idle.users == 0 && idle.pace.delay(now) == 0 {
				delete(ls.byKey, key)
			}
		}
	}
	if len(ls.byKey) < maxLanes {
		ls.byKey[l.key] = l
	}
}

// put ends a use of a lane.
func (ls *lanes) put(l *lane) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l.users--
}

// origin returns the origin of a URL (RFC 6454), without a default port.
func origin(u *url.URL) string {
	if u == nil {
		return "" // the base fails
	}
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	switch {
	case scheme == "http":
		host = strings.TrimSuffix(host, ":80")
	case scheme == "https":
		host = strings.TrimSuffix(host, ":443")
	}
	return scheme + "://" + host
}

// pass lets a request depart at once, if no request is before it, and the pace lets it go.
func (l *lane) pass(w *waiter) (turn uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.place(w) > 0 || l.pace.delay(now) > 0 || !l.pace.open(now) {
		return 0, false
	}
	if w.queued {
		l.queue, w.queued = slices.Delete(l.queue, 0, 1), false
		l.wakeFirst()
	} else {
		w.joined = now
	}
	if w.ticket == 0 {
		l.tickets++
		w.ticket = l.tickets
	}
	return l.pace.depart(w.joined, now), true
}

// join lets a request queue, at the place of its ticket. A request without one gets the last.
func (l *lane) join(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.queued {
		return
	}
	if w.ticket == 0 {
		l.tickets++
		w.ticket = l.tickets
	}
	if w.wake == nil {
		w.wake = make(chan struct{}, 1)
	}
	w.queued, w.joined = true, time.Now()
	place := l.place(w)
	l.queue = slices.Insert(l.queue, place, w)
}

// place returns the number of requests that are queued before w. A request without a ticket is behind all.
func (l *lane) place(w *waiter) int {
	if w.ticket == 0 {
		return len(l.queue)
	}
	place, _ := slices.BinarySearchFunc(l.queue, w.ticket, func(other *waiter, ticket uint64) int {
		return cmp.Compare(other.ticket, ticket)
	})
	return place
}

// leave removes a request from the queue, and notes its departure if it is sent.
func (l *lane) leave(w *waiter, sent bool) (turn uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !w.queued {
		return 0
	}
	place := l.place(w)
	l.queue = slices.Delete(l.queue, place, place+1)
	w.queued = false
	if sent {
		turn = l.pace.depart(w.joined, time.Now())
	}
	l.wakeFirst()
	return turn
}

// learn notes the response to a turn; nil means that there was none. A turn of 0 is no turn. It reports whether a denial
// holds the lane.
func (l *lane) learn(turn uint64, v *verdict, now time.Time) (held bool) {
	if turn == 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.wakeFirst()
	return l.pace.learn(turn, v, len(l.queue) > 0, rand.Float64(), now)
}

// returned lets the first request ask the limiter, because a unit has come back.
func (l *lane) returned() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) > 0 {
		l.queue[0].ask, l.queue[0].returned = time.Time{}, true
	}
	l.wakeFirst()
}

// wakeFirst wakes the first in the queue. It requires mu.
func (l *lane) wakeFirst() {
	if len(l.queue) == 0 {
		return
	}
	select {
	case l.queue[0].wake <- struct{}{}:
	default: // it is awake
	}
}

// delay returns how long a waiter may sleep until a change that wakes it, and the least
// that it still has to wait. Both are 0 if it is the first, and the pace lets it go.
func (l *lane) delay(w *waiter) (sleep, least time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if place := l.place(w); place > 0 {
		return headers.Never, l.pace.behind(place, now)
	}
	least = l.pace.delay(now)
	if least == 0 && !l.pace.open(now) {
		return l.pace.slow(now), 0
	}
	return least, least
}

// ahead returns the least wait of a request that queues now.
func (l *lane) ahead(w *waiter) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pace.behind(l.place(w), time.Now())
}

// mostBackoff returns the longest backoff of a request that does not hold the others.
func (l *lane) mostBackoff() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.pace.succeeded) < aliveCap {
		return aliveCap
	}
	return backoffCap
}

// dead returns for how long the service has answered 5xx without a wait, since its last other response.
func (l *lane) dead() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pace.dead.IsZero() {
		return 0
	}
	return time.Since(l.pace.dead)
}

// held returns how long the lane holds its requests.
func (l *lane) held() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(time.Until(l.pace.until), 0)
}

// asking returns how long a waiter has nothing to ask of the limiter. If that is 0, the waiter asks now.
func (l *lane) asking(w *waiter) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	wait := time.Until(w.ask)
	if wait <= 0 {
		w.returned = false
	}
	return max(wait, 0)
}

// notBefore notes when the limiter may have a unit for a waiter, if none has come back since it asked.
func (l *lane) notBefore(w *waiter, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !w.returned {
		w.ask = at
	}
}
