package client

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxLanes  = 1_000 // A lane takes about 400 bytes, and a line 300.
	maxRoutes = 100   // of one lane, with a line of their own
)

// lanes are the lanes of the origins and partitions that requests use.
type lanes struct {
	mu    sync.Mutex
	byKey map[string]*lane
}

// A lane has the lines of one origin and partition: one for all routes, and one for each route whose limit is its own.
type lane struct {
	key   string // also the limiter's
	users int    // guarded by lanes.mu

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
	t.lanes.mu.Lock()
	defer t.lanes.mu.Unlock()
	l, ok := t.lanes.byKey[key]
	if !ok {
		l = &lane{key: key, all: line{pace: newPace(t.o.MaxWait, t.o.Pace)}, routes: map[string]*line{}}
		if len(t.lanes.byKey) >= maxLanes {
			maps.DeleteFunc(t.lanes.byKey, func(_ string, l *lane) bool { return l.idle() })
		}
		if len(t.lanes.byKey) < maxLanes { // otherwise its requests wait alone
			t.lanes.byKey[key] = l
		}
	}
	l.users++
	return l
}

// put ends a use of a lane.
func (ls *lanes) put(l *lane) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l.users--
	l.idle()
}

// idle reports whether nothing uses a lane, and nothing in it is held. Routes that are not held join the others. It
// requires lanes.mu.
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
