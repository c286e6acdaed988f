// The books: every request and its answer, and every charge that Redis has made.

package fleet

import (
	"context"
	"sync"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

// A record is one request.
type record struct {
	id       string
	client   int
	path     string
	tokens   int64         // it costs
	lasts    time.Duration // the handler
	instance *instance
	began    time.Time
	hangsUp  time.Duration // 0: the client waits for the response

	// Written by the request's goroutine.
	decided  time.Time
	ended    time.Time
	status   int
	admitted bool
	source   algorithms.Source // of the unit that the request takes
}

type recordKey struct{}

func recordOf(ctx context.Context) *record { return ctx.Value(recordKey{}).(*record) }

// observe notes the verdict of a request.
func observe(ctx context.Context, e ratelimit.Event) {
	if e.Kind != ratelimit.Decided {
		return
	}
	r := recordOf(ctx)
	p, _ := e.Verdict.Policy(policyRequests)
	r.decided, r.admitted, r.source = time.Now(), e.Verdict.Allowed, p.Decision.Source
}

// Books hold the requests of an episode, and the units that the server has charged.
type books struct {
	mu      sync.Mutex // guards the fields below
	records []*record
	charges map[string]int64 // by stored key: units charged, less units returned
}

func newBooks() *books {
	b := new(books)
	b.begin()
	return b
}

// begin forgets an earlier episode.
func (b *books) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.records, b.charges = nil, make(map[string]int64)
}

// charge is called by the server.
func (b *books) charge(key string, units int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.charges[key] += units
}

func (b *books) add(r *record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.records = append(b.records, r)
}
