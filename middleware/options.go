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
	// ClientIP finds the addresses of clients. It must be a keyfunc.IP or a
	// keyfunc.Peer; the zero Key means the peer. Behind a proxy, name the proxy
	// here, and give all Middlewares the same Options. Policies without a Key, and with a keyfunc.IP without proxy
	// settings, count by the address that ClientIP finds.
	//
	// Requests with unknown API keys are charged to that address. If ClientIP is
	// set, an address that was denied for unknown keys is refused until its
	// RetryAfter has passed, for at most an hour, also with a valid key. No key is
	// looked up meanwhile.
	ClientIP keyfunc.Key

	// Headers are the families of fields that responses carry; 0 means
	// headers.Draft and draft 6's separate fields.
	Headers headers.Dialect

	// Exempt are the addresses, as ClientIP finds them, of health checks and of
	// the operator's own jobs. Their requests pass without identification, no
	// policy counts them, and no ban holds for them. The configuration decides;
	// Policy.Skip decides by the request, and an override with ModeOff by the
	// key. Prefixes must be masked, and must not contain all addresses.
	//
	// Do not exempt customers: nothing protects the service from exempt clients.
	Exempt []netip.Prefix

	// Overrides change limits while the service runs; nil means none. The
	// middleware logs and ignores the limit of an override that New would refuse.
	Overrides Overrides

	// Denied answers every refused request, also 400, 401 and 503; Policies of the
	// verdict may be empty then. It must write the verdict's Status: otherwise
	// net/http answers 200. It also answers gRPC and Connect requests, whose clients
	// expect other terms than HTTP's. Before
	// the middleware calls it, it sets the limit fields, Retry-After,
	// WWW-Authenticate and Cache-Control: no-store. nil means a short
	// application/problem+json.
	Denied func(http.ResponseWriter, *http.Request, Verdict)

	// Observers receive every event, in order, e.g. the metrics of package
	// prommetrics.
	Observers []Observer

	// Logger receives decisions that could not be made, each message at most once
	// in ten seconds, and findings; see Middleware.Findings. nil means
	// slog.Default().
	Logger *slog.Logger

	// LimiterName names the limiter for observers. The default is "redis" for a
	// limiter that instances share, and "memory" for others.
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
