// What errors mean: why a call was not decided, what that says of Redis, and
// whether Redis may have executed something.

package shared

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// ErrMisconfigured is wrapped by errors of [Limiter.Ready] that will not resolve
// themselves: a password is wrong, a permission is missing, or the client is not
// a Cluster's. The error says what to do. It should end the program at start:
//
//	err := limiter.Ready(ctx)
//	if errors.Is(err, shared.ErrMisconfigured) {
//		log.Fatal(err)
//	}
var ErrMisconfigured = errors.New("redis is misconfigured")

// The reasons, as labels of metrics have them.
const (
	reasonUnavailable   = "unavailable"
	reasonTimeout       = "timeout"
	reasonOverload      = "overload"
	reasonFailover      = "failover"
	reasonCapacity      = "capacity"
	reasonConfiguration = "configuration"
	reasonKey           = "key"
	reasonCancelled     = "cancelled"
	reasonInternal      = "internal"
)

// reasons are all of them.
var reasons = []string{
	reasonUnavailable, reasonTimeout, reasonOverload, reasonFailover, reasonCapacity,
	reasonConfiguration, reasonKey, reasonCancelled, reasonInternal,
}

// Reason returns in a word why a call was not decided, as a label for metrics
// and logs. It accepts the errors of [Limiter.Allow] and [Limiter.Ready], wrapped
// or not, and the causes that they wrap. The words are:
//
//	unavailable    Redis cannot be reached or refuses to serve: it is down,
//	               loads its data, cannot save, or runs a long script. Unknown
//	               errors are unavailable, too.
//	timeout        Redis has not answered in time.
//	overload       Nothing was sent: too many calls of this process wait, or
//	               the client had no connection free.
//	failover       A master changes, or slots of a Cluster move.
//	capacity       Redis is out of memory or of connections.
//	configuration  It will not resolve itself: see [ErrMisconfigured].
//	key            A stored key holds something that is not a limiter's. Other
//	               keys are not affected.
//	cancelled      The caller's context has ended.
//	internal       A mistake in the program or in this library, such as a wrong
//	               check, a closed client, or a reply that is not the script's.
//
// Reason returns "" for nil. The error of a context counts as cancelled, because
// it is the caller's: a caller that sets a deadline of its own knows better.
func Reason(err error) string { return troubleOf(err).reason }

// A trouble is what an error means to the layers that go on without a decision.
type trouble struct {
	reason   string
	effect   effect
	retry    bool // sending again may succeed, and nothing was executed
	executed bool // a charge may have been made
}

// An effect is what a round trip says to a circuit breaker.
type effect uint8

const (
	// effectSuccess: Redis answered. An error that one caller or one key can
	// cause is no reason to bypass Redis for all others.
	effectSuccess effect = iota
	// effectFailure: Redis is to blame.
	effectFailure
	// effectNone: it says nothing about Redis.
	effectNone
)

// troubleOf looks an error up in the table.
func troubleOf(err error) trouble {
	if err == nil {
		return trouble{}
	}
	r := rowOf(err)
	return trouble{reason: r.reason, effect: r.effect, retry: r.retry, executed: r.executed}
}

// notReady returns the error of Ready for why Redis cannot decide. It says what
// to do if that will not resolve itself.
func notReady(cause error) error {
	if advice := rowOf(cause).advice; advice != "" {
		return fmt.Errorf("shared: %w: %w (%s)", ErrMisconfigured, cause, advice)
	}
	return fmt.Errorf("shared: redis: %w", cause)
}

func rowOf(err error) *errorRow {
	texts := appendTexts(nil, err)
	for i := range errorRows {
		if r := &errorRows[i]; r.matches(err, texts) {
			return r
		}
	}
	return &unforeseen
}

// An errorRow says what some errors mean. One of its first three fields selects
// them.
type errorRow struct {
	is   error            // they wrap it
	says string           // the text of Redis or its client begins with it
	has  func(error) bool // anything else

	reason          string
	effect          effect
	retry, executed bool
	advice          string // what to do about a misconfiguration
}

func (r *errorRow) matches(err error, texts []string) bool {
	switch {
	case r.is != nil:
		return errors.Is(err, r.is)
	case r.has != nil:
		return r.has(err)
	}
	for _, text := range texts {
		if strings.HasPrefix(text, r.says) {
			return true
		}
	}
	return false
}

// appendTexts appends the texts of the innermost errors that err wraps. Wrapped
// texts differ by client and version, and so do the ends of Redis's own. Only
// how these begin is reliable.
func appendTexts(texts []string, err error) []string {
	var wrapped []error
	switch e := err.(type) {
	case nil:
		return texts
	case interface{ Unwrap() error }:
		wrapped = []error{e.Unwrap()}
	case interface{ Unwrap() []error }:
		wrapped = e.Unwrap()
	}
	before := len(texts)
	for _, w := range wrapped {
		texts = appendTexts(texts, w)
	}
	if len(texts) > before {
		return texts
	}
	text := err.Error()
	return append(texts, text[len(preamble.FindString(text)):])
}

// preamble may stand before the text that matters: "ERR ", also of proxies and
// forks that put it before other codes, and in Redis 6.2 the place in the
// script, once or twice.
var preamble = regexp.MustCompile(`^(ERR Error running script \(call to f_[0-9a-f]*\): )?(@user_script: ?[0-9]+: )*-?(ERR )?`)

// A scriptError is an error that a reply of the script holds as text.
type scriptError string

func (e scriptError) Error() string { return string(e) }

// RedisError makes e one of go-redis's errors, to its functions.
func (scriptError) RedisError() {}

// errStoredKey is wrapped, beside a scriptError, by errors of a single key.
var errStoredKey = errors.New("a stored key cannot be read")

// ownDeadline returns err, wrapped in errTimeout if it is a context's. It is for
// errors of contexts that no caller has ended.
func ownDeadline(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", errTimeout, err)
	}
	return err
}
