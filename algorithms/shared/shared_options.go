// Options of a shared limiter and all of its parts.

package shared

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms/shared/internal/batch"
)

// Options tune a [Limiter]. The zero value is the default of every option.
type Options struct {
	// Prefix begins every stored key; empty means "penstock". Services with the same prefix count together, and share
	// each limit when Redis is away: give each service its own, unless they do. It has at most 64 bytes of printable
	// ASCII without spaces and braces.
	Prefix string

	// Deadline bounds the wait to be sent, and that for the answer; 0 means 50 ms. After that a call is decided
	// without Redis. It must be longer than the round trip to Redis.
	Deadline time.Duration

	// Logger receives changes of state, and a line a minute about trouble that goes on. It receives no keys. Nil means
	// slog.Default().
	Logger *slog.Logger

	// Now is the clock of decisions; nil means the Redis server's. It must be safe for concurrent use. Instances whose
	// clocks differ by more than 100 ms repair each other's states. With Now, no answer is remembered.
	Now func() time.Time

	// InFlight is the most batches under way at once, of a Cluster to each master. 0 means four fifths of the
	// client's pool, or 4 if the client does not show its pool. For limiters that share a client, set parts of that.
	InFlight int

	// Instances is how many limiters share Redis and the prefix, until Redis can report it; 0 means one. Set it if
	// the service runs on several instances: PS202 in RUNBOOK.md says why.
	Instances int

	// MaxKeys bounds the keys counted without Redis: see [algorithms.MemoryOptions].
	MaxKeys int

	// Ahead, in per cent of each burst, is how much all instances together may admit before Redis has charged it; 0
	// means nothing, and the most is 50. It needs no Now, and a view for every key in use.
	Ahead int

	// Views bounds the keys whose last answer of Redis is remembered; 0 means 100 000, with Ahead 500 000, and
	// [ViewsOff] none.
	Views int
}

// ViewsOff is Options.Views for no remembered answers.
const ViewsOff = -1

const (
	defaultPrefix     = "penstock"
	maxPrefix         = 64
	defaultDeadline   = 50 * time.Millisecond
	maxInstances      = 100_000
	defaultViews      = 100_000
	defaultViewsAhead = 500_000
)

// withDefaults returns a copy of o with all defaults filled in.
func (o *Options) withDefaults() Options {
	all := *cmp.Or(o, &Options{})
	all.Prefix = cmp.Or(all.Prefix, defaultPrefix)
	all.Deadline = cmp.Or(all.Deadline, defaultDeadline)
	all.Logger = cmp.Or(all.Logger, slog.Default())
	all.Instances = cmp.Or(all.Instances, 1)
	if all.Ahead > 0 {
		all.Views = cmp.Or(all.Views, defaultViewsAhead)
	}
	all.Views = cmp.Or(all.Views, defaultViews)
	return all
}

// validate returns everything that is wrong with options for a client. They have
// their defaults.
func (o *Options) validate(c Client) error {
	errs, pool := []error{validateClient(c)}, 0
	if errs[0] == nil {
		pool = batch.PoolOf(c)
	}
	mistake := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf("shared: "+format, args...))
		}
	}
	mistake(len(o.Prefix) > maxPrefix || strings.ContainsFunc(o.Prefix, odd),
		"Prefix is %q; want at most %d bytes of printable ASCII without spaces and braces", o.Prefix, maxPrefix)
	mistake(o.Deadline < 0, "Deadline is %v; it must not be negative", o.Deadline)
	mistake(o.InFlight < 0, "InFlight is %d; it must not be negative", o.InFlight)
	mistake(pool > 0 && o.InFlight > pool, "InFlight is %d, and the client's PoolSize is only %d", o.InFlight, pool)
	mistake(o.Instances < 0 || o.Instances > maxInstances, "Instances is %d; want at most %d, or 0 for 1", o.Instances, maxInstances)
	mistake(o.MaxKeys < 0, "MaxKeys is %d; it must not be negative", o.MaxKeys)
	mistake(o.Views < ViewsOff, "Views is %d; it must not be negative, except ViewsOff", o.Views)
	mistake(o.Ahead < 0 || o.Ahead > 50, "Ahead is %d; want per cent from 0 to 50", o.Ahead)
	mistake(o.Ahead > 0 && o.Ahead <= 50 && (o.Now != nil || o.Views == ViewsOff), "Ahead is %d; it needs Views, and no Now", o.Ahead)
	return errors.Join(errs...)
}

// validateClient returns why a client cannot serve a limiter, or nil.
func validateClient(c Client) error {
	if v := reflect.ValueOf(c); c == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return errors.New("shared: the Redis client is nil")
	}
	switch c.(type) {
	case redis.Pipeliner, *redis.AutoPipeliner:
		return fmt.Errorf("shared: %T is a pipeline; pass the client itself, because the limiter makes its own pipelines", c)
	case interface{ Options() *redis.RingOptions }: // also embedded in another type
		return errors.New("shared: a Ring forgets limits when it moves keys between shards; use Redis Cluster, Sentinel or one server")
	}
	return nil
}
