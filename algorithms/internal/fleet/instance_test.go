// An instance of the service: the real middleware and the real limiter, over the
// real client.

package fleet

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// The headers of requests.
const (
	headerClient  = "X-Client"
	headerRequest = "X-Request"
)

// Paths, and the policies that hold there beside the policies of all paths.
const (
	pathOrders = "/orders" // none
	pathLogin  = "/login"  // fails closed
	pathTokens = "/tokens" // pays for what the response has cost
)

const (
	policyClients  = "clients"
	policyRequests = "requests" // one unit of a key for each request: it shows how often a request was charged
	policyLogins   = "logins"
	policyTokens   = "tokens" // also of a key for each request

	reserved = 4 // tokens
)

// An instance takes part in the fleet until it stops.
type instance struct {
	link    *link
	client  *redis.Client
	limiter *shared.Limiter
	guard   *ratelimit.Middleware
	handler http.Handler
}

// start starts an instance of a fleet of n.
func start(l *link, n int, p *plan) *instance {
	in := &instance{link: l}
	in.client = redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:6379", Dialer: l.dial, Protocol: 2, DisableIdentity: true, PoolSize: p.pool,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	quiet := slog.New(slog.DiscardHandler)
	in.limiter = ratelimit.Must(shared.New(in.client, &shared.Options{Instances: n, Ahead: p.ahead, Logger: quiet}))
	only := func(path string) func(*http.Request) bool {
		return func(r *http.Request) bool { return r.URL.Path != path }
	}
	in.guard = ratelimit.Must(ratelimit.New(in.limiter, &ratelimit.Options{Logger: quiet, Observers: []ratelimit.Observer{ratelimit.ObserverFunc(observe)}},
		ratelimit.Policy{Name: policyClients, Key: keyfunc.Header(headerClient), Limit: p.limit, Skip: func(r *http.Request) bool { return r.URL.Path == pathLogin }},
		ratelimit.Policy{Name: policyRequests, Key: keyfunc.Header(headerRequest), Limit: p.request},
		ratelimit.Policy{Name: policyLogins, Key: keyfunc.Header(headerClient), Limit: algorithms.SlidingWindowLog(1_000, time.Second), Fail: algorithms.FailClosed, Skip: only(pathLogin)},
		ratelimit.Policy{
			Name: policyTokens, Key: keyfunc.Header(headerRequest), Limit: p.request, Skip: only(pathTokens),
			Cost: func(*http.Request) int64 { return reserved },
		},
	))
	in.handler = in.guard.Handler(http.HandlerFunc(serve))
	return in
}

// serve is the handler of the service.
func serve(w http.ResponseWriter, r *http.Request) {
	rec := recordOf(r.Context())
	time.Sleep(rec.lasts)
	if r.URL.Path == pathTokens {
		_ = ratelimit.Settle(r.Context(), rec.tokens, policyTokens)
	}
}

// stop ends an instance that has no request under way, as a deploy does.
func (in *instance) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	in.guard.Release()
	_ = in.guard.Close(ctx)
	_ = in.limiter.Close()
	_ = in.client.Close()
	in.link.dies()
}
