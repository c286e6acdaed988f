package ratelimit

import (
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"

	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware/internal/exempt"
	"github.com/penstock-go/penstock/middleware/internal/joined"
)

// Options tune a [Middleware]. The zero value of each field is a default.
type Options struct {
	// ClientIP finds the addresses of clients: a keyfunc.IP or a keyfunc.Peer. The zero Key means the peer. Behind a
	// proxy, name the proxy here, and give all Middlewares the same Options.
	//
	// If it is set, it also bounds the look-ups of guessed API keys: see SECURITY.md.
	ClientIP keyfunc.Key

	// Headers are the fields of responses; 0 means headers.Draft|headers.SeparateFields.
	Headers headers.Dialect

	// Exempt are addresses that no policy counts, such as health checks and your own jobs, but not customers.
	Exempt []netip.Prefix

	// Overrides, if not nil, change limits while the service runs. An invalid limit is logged and ignored.
	Overrides Overrides

	// Refused answers every refused request, whatever its protocol: it writes the verdict's Status and a body, or
	// calls [Refuse], the default. All other fields of a refusal are set before.
	Refused func(http.ResponseWriter, *http.Request, Verdict)

	// Observers receive every event, in order.
	Observers []Observer

	// PlainKeys shows operators keys instead of hashes.
	PlainKeys bool

	// Logger receives findings, and failed decisions: each message of a policy at most once in ten seconds. No request
	// waits for its handler. nil means slog.Default().
	Logger *slog.Logger

	// LimiterName names the limiter for observers. The default is "redis" if instances share it, otherwise "memory".
	LimiterName string
}

func (m *Middleware) validate() error {
	var errs []error
	if m.limiter == nil {
		errs = append(errs, errors.New("ratelimit: the limiter is nil"))
	}
	if slices.Contains(m.observers, nil) {
		errs = append(errs, errors.New("ratelimit: one of Observers is nil"))
	}
	info, err := m.clientIP.Inspect()
	if err == nil && !info.Address {
		err = errors.New("want a keyfunc.IP or a keyfunc.Peer")
	}
	keysOf := m.clientIP.Addresses
	if err != nil {
		keysOf = func(netip.Addr) []string { return nil }
	}
	errs = append(errs, joined.Prefix("ratelimit: Headers", m.dialect.Validate())...)
	errs = append(errs, joined.Prefix("ratelimit: ClientIP", err)...)
	errs = append(errs, exempt.Validate(m.exempt, keysOf))
	return errors.Join(errs...)
}

// exempt reports whether the client of the request is exempt. A client whose address
// cannot be found is not.
func (q *request) exempt() bool {
	key, err := q.address()
	q.keys = q.keys[:0] // no part has one yet
	return err == nil && exempt.Contains(q.m.exempt, key)
}
