package ratelimit

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"

	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/keyfunc"
)

// Options tune a [Middleware]. The zero value of each field is a default.
type Options struct {
	// ClientIP finds the addresses of clients: a keyfunc.IP or a keyfunc.Peer. The zero Key means the peer. Behind a
	// proxy, name the proxy here, and give all Middlewares the same Options.
	//
	// Requests with unknown API keys are charged to that address. If ClientIP is set, an address that was denied for
	// unknown keys is refused until its RetryAfter has passed, for at most an hour, also with a valid key.
	ClientIP keyfunc.Key

	// Headers are the families of fields that responses carry; 0 means headers.Draft and draft 6's separate fields.
	Headers headers.Dialect

	// Exempt are addresses whose requests no policy counts: health checks and your own jobs, not customers. Prefixes
	// must be masked, and must not contain all addresses.
	Exempt []netip.Prefix

	// Overrides change limits while the service runs; nil means none. The middleware logs and ignores a limit that New
	// would refuse.
	Overrides Overrides

	// Denied answers every refused request, also gRPC's, and must write the verdict's Status. The limit fields,
	// Retry-After, WWW-Authenticate and Cache-Control: no-store are set before. The verdict may have no Policies. nil
	// means a short application/problem+json.
	Denied func(http.ResponseWriter, *http.Request, Verdict)

	// Observers receive every event, in order, e.g. the metrics of prommetrics.
	Observers []Observer

	// Logger receives findings, and decisions that could not be made, each message at most once in ten seconds. nil
	// means slog.Default().
	Logger *slog.Logger

	// LimiterName names the limiter for observers. The default is "redis" for a limiter that instances share, and
	// "memory" for others.
	LimiterName string
}

// validate reports every misconfiguration of the options.
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
	errs = append(errs, lines("ratelimit: Headers", m.dialect.Validate())...)
	errs = append(errs, lines("ratelimit: ClientIP", err)...)
	errs = append(errs, validateExempt(m.exempt, m.clientIP))
	return errors.Join(errs...)
}

// lines returns the errors that err joins, each with the prefix, so that each
// line is complete.
func lines(prefix string, err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{fmt.Errorf("%s: %w", prefix, err)}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, lines(prefix, e)...)
	}
	return all
}
