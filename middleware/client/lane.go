package client

import (
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
// the queue.
type lane struct {
	key   string // also the limiter's
	paced bool
	users int // guarded by lanes.mu

	mu    sync.Mutex
	queue []*waiter
	pace  pace
}

// A waiter is a request in a queue. wake has room for one signal: its place or the pace
// has changed.
type waiter struct{ wake chan struct{} }

// use returns the lane of a request, for the caller to put back, or nil.
func (t *Transport) use(req *http.Request) *lane {
	if !t.o.Pace && t.o.Limiter == nil {
		return nil
	}
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
		l = &lane{key: key, paced: t.o.Pace, pace: newPace(t.o.MaxWait)}
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

// put ends a use of a lane. A lane of nil is no lane.
func (ls *lanes) put(l *lane) {
	if l == nil {
		return
	}
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

func (l *lane) join() *waiter {
	w := &waiter{wake: make(chan struct{}, 1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(l.queue, w)
	return w
}

// leave removes a waiter, and notes its departure if its request is sent.
func (l *lane) leave(w *waiter, sent bool) (turn uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.queue, w)
	l.queue = slices.Delete(l.queue, i, i+1)
	if sent {
		turn = l.pace.depart(time.Now())
	}
	l.wakeFirst()
	return turn
}

// learn notes the response to a turn; nil means that there was none. A turn of 0 is no turn.
func (l *lane) learn(turn uint64, f *headers.Fields, denied bool, now time.Time) {
	if l == nil || !l.paced || turn == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pace.learn(turn, f, denied, now)
	l.wakeFirst()
}

func (l *lane) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
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
	place := slices.Index(l.queue, w)
	switch {
	case place > 0:
		return headers.Never, l.behind(place)
	case l.paced && l.pace.probing:
		return headers.Never, 0
	case !l.paced:
		return 0, 0
	}
	least = l.pace.delay(time.Now())
	return least, least
}

// ahead returns the least wait of a request that joins the queue now.
func (l *lane) ahead() time.Duration {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.behind(len(l.queue))
}

// behind returns the least wait of a place in the queue. It requires mu.
func (l *lane) behind(place int) time.Duration {
	if !l.paced {
		return 0
	}
	least, interval := l.pace.delay(time.Now()), l.pace.least()
	if interval > 0 && int64(place) > int64((headers.Never-least)/interval) {
		return headers.Never
	}
	return least + time.Duration(place)*interval
}
