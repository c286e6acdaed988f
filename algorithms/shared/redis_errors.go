// The errors of a limiter, for its program and its operators.

package shared

import (
	"fmt"

	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
)

// ErrMisconfigured is wrapped by errors of [Limiter.Ready] that will not resolve themselves, so end the program.
var ErrMisconfigured = trouble.ErrMisconfigured

// A Misconfiguration is an error of [Limiter.Ready] that wraps
// [ErrMisconfigured].
type Misconfiguration struct {
	// Fault is cluster, standalone, sentinel, nosentinel, master, plaintext,
	// certificate, password, login, protected, permission, command, scripting or
	// closed; see RUNBOOK.md.
	Fault string

	Cause  error  // what the server or the client said
	Advice string // what to do, for users of go-redis
}

func (m *Misconfiguration) Error() string {
	return fmt.Sprintf("shared: %v: %v (%s)", ErrMisconfigured, m.Cause, m.Advice)
}

// Unwrap returns ErrMisconfigured and the cause.
func (m *Misconfiguration) Unwrap() []error { return []error{ErrMisconfigured, m.Cause} }

// Reason returns one word for metrics and logs, for an error of [Limiter.Allow] or [Limiter.Ready] or its cause:
// unavailable, timeout, overload, failover, capacity, configuration, key, cancelled or internal. RUNBOOK.md explains
// them. Reason returns "" for nil.
func Reason(err error) string { return trouble.Of(err).Reason }

// notReady returns the error of Ready for the cause. It includes the remedy if
// the cause will not resolve itself.
func notReady(cause error) error {
	if f := trouble.Of(cause).Fault; f != nil {
		return &Misconfiguration{Fault: f.Name, Cause: trouble.Brief(cause), Advice: f.Advice}
	}
	return fmt.Errorf("shared: redis: %w", cause)
}
