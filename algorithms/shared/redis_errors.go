package algorithms

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// An ErrorClass says in a word why a call was not decided.
type ErrorClass uint8

const (
	// ErrorNone: there is no error.
	ErrorNone ErrorClass = iota
	// ErrorUnavailable: Redis cannot be reached, or refuses to serve: it is
	// down, loads its data, cannot save them, or runs somebody's long script.
	// Errors that nobody has foreseen are of this class, too.
	ErrorUnavailable
	// ErrorTimeout: Redis has not answered in time.
	ErrorTimeout
	// ErrorOverload: nothing was sent, because too many calls of this process
	// wait, or because the client had no connection free.
	ErrorOverload
	// ErrorFailover: another server is to be written to, or will be shortly: a
	// master changes, or slots of a Cluster move.
	ErrorFailover
	// ErrorCapacity: Redis is out of memory, or of connections.
	ErrorCapacity
	// ErrorConfiguration: it will not pass by itself. A password is wrong, a
	// right is missing, or the client is not one for Redis Cluster.
	// [Redis.Ready] finds it at start, and says what to do.
	ErrorConfiguration
	// ErrorKey: a stored key holds what is not a limiter's. Other keys are not
	// affected.
	ErrorKey
	// ErrorCancelled: the caller's context has ended.
	ErrorCancelled
	// ErrorInternal: a mistake in the program or in this library, such as
	// [ErrInvalid], a closed client, or a reply that is not the script's.
	ErrorInternal

	errorClasses
)

var classNames = [errorClasses]string{
	"none", "unavailable", "timeout", "overload", "failover", "capacity", "configuration", "key", "cancelled", "internal",
}

// String returns the class as a metric's label has it, e.g. "unavailable".
func (c ErrorClass) String() string {
	if c >= errorClasses {
		return "unknown"
	}
	return classNames[c]
}

// Classify returns the class of a limiter's error, wrapped or not: ErrorNone
// for nil, and ErrorUnavailable for an error that it does not know.
//
// A context's error is the caller's, and so ErrorCancelled. Whoever sets a
// deadline of their own knows better than Classify whose it was that passed.
func Classify(err error) ErrorClass { return troubleOf(err).class }

// A trouble is what an error means to those who have to go on without a
// decision.
type trouble struct {
	class    ErrorClass
	effect   effect
	retry    bool // it may be sent once more: nothing was executed, and that may succeed
	executed bool // a charge may have been made
}

// An effect is what a round trip says to a circuit breaker.
type effect uint8

const (
	// effectSuccess: Redis answered. What one caller or one key can cause is
	// no reason to go without it for all others.
	effectSuccess effect = iota
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
	return trouble{class: r.class, effect: r.effect, retry: r.retry, executed: r.executed}
}

func rowOf(err error) *row {
	texts := appendTexts(nil, err)
	for i := range troubles {
		if r := &troubles[i]; r.matches(err, texts) {
			return r
		}
	}
	return &unforeseen
}

// A row of the table says what errors mean of which one of its first three
// fields is true.
type row struct {
	is   error            // what they wrap
	says string           // how the text of Redis or its client begins
	has  func(error) bool // anything else

	class           ErrorClass
	effect          effect
	retry, executed bool
	advice          string // what to do about a configuration
}

func (r *row) matches(err error, texts []string) bool {
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

// appendTexts appends what the errors say that err wraps in the end. Wrapped
// texts differ by client and version, and so do the ends of Redis's own: only
// how these begin is good to go by.
func appendTexts(texts []string, err error) []string {
	var wrapped []error
	switch e := err.(type) { //nolint:errorlint // it is what unwraps
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

// preamble is what may stand before the text that matters: "ERR ", also of
// proxies and forks that put it before other codes, and in Redis 6.2 the place
// in the script, once or twice.
var preamble = regexp.MustCompile(`^(ERR Error running script \(call to f_[0-9a-f]*\): )?(@user_script: ?[0-9]+: )*-?(ERR )?`)

// A scriptError is an error that a reply of the script holds as text.
type scriptError string

func (e scriptError) Error() string { return string(e) }

// RedisError makes e one of go-redis's errors, to its functions.
func (scriptError) RedisError() {}

// errStoredKey is wrapped, beside a scriptError, by errors of a single key.
var errStoredKey = errors.New("a stored key cannot be read")

// ownDeadline returns err, as errTimeout if it is a context's: one that no
// caller has ended.
func ownDeadline(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", errTimeout, err)
	}
	return err
}
