package trouble

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
)

// The errors of this side of the connection.
var (
	// ErrOpen is the error of a round trip that a circuit prevents. Nothing was sent.
	ErrOpen = fmt.Errorf("the circuit is open: %w", algorithms.ErrUnavailable)

	// ErrTimeout is the error of a call that was sent, and has no answer in time.
	ErrTimeout = fmt.Errorf("no answer within the limiter's deadline: %w", context.DeadlineExceeded)

	// ErrUnsent is the error of a call that waited behind others, or for a
	// connection: nothing was executed.
	ErrUnsent = fmt.Errorf("not sent within the limiter's deadline: %w", context.DeadlineExceeded)

	// ErrOverloaded is wrapped by the error of a call that was not sent: too many
	// calls wait before it, too many batches may be stuck, or it has waited behind
	// others for the whole deadline.
	ErrOverloaded = errors.New("overloaded")

	// ErrProcessLate is the outcome of a round trip that expired because this
	// process was late.
	ErrProcessLate = errors.New("this process was late itself")

	// ErrReply is the error of a reply that cannot be read.
	ErrReply = errors.New("the reply is not the script's: is something between this process and Redis?")

	// ErrStoredKey is wrapped, beside a ScriptError, by errors of a single key.
	ErrStoredKey = errors.New("a stored key cannot be read")

	// ErrMisconfigured is wrapped by errors that will not resolve themselves.
	ErrMisconfigured = errors.New("redis is misconfigured")

	// ErrSentinel is the cause of a misconfiguration that a sentinel's own words
	// hide.
	ErrSentinel = errors.New("the server is a Sentinel")

	errMaster = errors.New("the Sentinels do not know the name of the master")
	errClosed = fmt.Errorf("%w by the program; it must close it after the limiter", redis.ErrClosed)
)

// A ScriptError is an error that a reply of the script holds as text.
type ScriptError string

func (e ScriptError) Error() string { return string(e) }

// RedisError marks e as an error of Redis for go-redis's functions.
func (ScriptError) RedisError() {}

// AsTimeout returns err, wrapped in ErrTimeout if it is a context's. It is
// for contexts that no caller has ended.
func AsTimeout(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", ErrTimeout, err)
	}
	return err
}

// Brief makes the text of an error fit for logs and for operators. It omits the
// arguments that a server repeats when it does not know a command, because they
// include keys. It says who has closed a client. Go-redis says that no sentinel can be reached even if one has
// answered; Brief then gives that answer.
func Brief(err error) error {
	switch text, _, cut := strings.Cut(err.Error(), ", with args beginning with"); {
	case masterUnknown(err):
		return errMaster
	case errors.Is(err, redis.ErrClosed):
		return errClosed
	case cut:
		return ScriptError(text)
	}
	return err
}

// Dialing reports whether there was no connection yet.
func Dialing(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// masterUnknown reports whether a sentinel answered that it has no master of the
// client's name. Go-redis then says that no sentinel can be reached.
func masterUnknown(err error) bool {
	return errors.Is(err, redis.Nil) && strings.Contains(strings.ToLower(err.Error()), "sentinels")
}

func timedOut(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}
