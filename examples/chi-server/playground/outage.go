// The simulated outage of Redis, and the limiter that meets it.

package playground

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms/shared"
)

const outage = 30 * time.Second // at most

// errGone is the error of a Redis that is down.
var errGone = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}

// A gate between the sandboxes' limiter and Redis fails all commands while it is
// shut. The API's limiter has another client, so the outage does not reach it.
type gate struct {
	client redis.UniversalClient
	until  atomic.Int64    // Unix milliseconds at which it opens
	shared *shared.Limiter // asks Redis through the gate
}

// Process implements shared.Client.
func (g *gate) Process(ctx context.Context, cmd redis.Cmder) error {
	if g.left() > 0 {
		cmd.SetErr(errGone)
		return errGone
	}
	return g.client.Process(ctx, cmd)
}

func (g *gate) left() time.Duration {
	return max(0, time.Until(time.UnixMilli(g.until.Load())))
}

// turn shuts or opens the gate: {"gone":true}.
func (g *gate) turn(w http.ResponseWriter, r *http.Request) {
	var ask struct{ Gone bool }
	if !read(w, r, &ask) {
		return
	}
	var until int64
	if ask.Gone {
		until = time.Now().Add(outage).UnixMilli()
	}
	g.until.Store(until)
	w.WriteHeader(http.StatusNoContent)
}
