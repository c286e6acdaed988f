// Whether Redis can decide. Until it has done so once, Ready examines failures
// closely, because most misconfigured programs are misconfigured from their
// start.

package shared

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/batch"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
)

// errSilent is a hint for a client that receives no answer. A client and a server
// that disagree about TLS wait for each other, or hang up.
var errSilent = errors.New("if this lasts, check that the server and its Sentinels speak TLS exactly if the client has a TLSConfig")

// ready implements [Limiter.Ready], without the circuits. Until Redis has decided
// once, ready examines its commands or the failure. Once Redis can decide, ready
// also reports findings.
func (r *redisLayer) ready(ctx context.Context) error {
	err := r.decideProbes(ctx)
	if !r.decided.Load() {
		if err == nil {
			err = r.runCommands(ctx)
		} else {
			err = r.explain(ctx, err)
		}
		r.decided.Store(err == nil)
	}
	if err != nil {
		if end := ctx.Err(); end != nil && trouble.Of(err).Fault == nil {
			err = fmt.Errorf("%w: %v", end, err) // the caller is the reason
		}
		return notReady(err)
	}
	if !r.informed.Load() {
		r.findings(ctx)
	}
	return nil
}

// readyPolicy's suffix distinguishes it from all policies of callers.
const readyPolicy = "penstock~ready"

// probes are the calls of ready. Most scripts are takes, of a new key and of a
// stored key. The settlements between them write a log and delete keys, and
// cannot be in one call with takes. The keys lie in different quarters of the
// slots of a Cluster, so that a missing master shows.
func probes() [][]algorithms.Check {
	bucket, log := algorithms.TokenBucket(10, time.Second), algorithms.SlidingWindowLog(10, time.Millisecond)
	probe := func(key string, l algorithms.Limit, op algorithms.Op) algorithms.Check {
		return algorithms.Check{Policy: readyPolicy, Key: key, Limit: l, Op: op, Cost: 1}
	}
	take := []algorithms.Check{probe(readyKeys[0], bucket, algorithms.Take)}
	settle := []algorithms.Check{
		probe(readyKeys[1], log, algorithms.Force), probe(readyKeys[1], log, algorithms.Force),
		probe(readyKeys[2], bucket, algorithms.Reset), probe(readyKeys[3], bucket, algorithms.Reset),
	}
	return [][]algorithms.Check{take, take, settle}
}

var readyKeys = [...]string{"probe=0", "probe=1", "probe=2", "probe=3"}

// decideProbes returns why Redis cannot decide the probes.
func (r *redisLayer) decideProbes(ctx context.Context) error {
	for _, checks := range probes() {
		c, err := newCall(checks)
		if err != nil {
			return err
		}
		err = r.decide(ctx, c)
		c.free()
		if err != nil {
			return err
		}
	}
	return nil
}

// runCommands runs each command of the script outside of it: a missing or denied
// command would otherwise show only once an algorithm needs it. Redis then names
// the command, which it does not do for scripts. In a Cluster, several nodes run
// the commands, because each has its own permissions.
func (r *redisLayer) runCommands(ctx context.Context) error {
	keys := readyKeys[:1]
	if r.cluster != nil {
		keys = readyKeys[:]
	}
	for _, key := range keys {
		var commands []redis.Cmder
		for command := range strings.SplitSeq(trouble.ScriptCommands, ";") {
			var args []any
			for _, word := range strings.Fields(strings.ReplaceAll(command, "KEY", r.prefix+"{"+key+"}:"+readyPolicy)) {
				args = append(args, word)
			}
			commands = append(commands, redis.NewCmd(ctx, args...))
		}
		if err := r.transport.Do(ctx, commands...); err != nil && trouble.Of(err).Reason != trouble.Key {
			return err
		}
	}
	return nil
}

// explain returns the cause behind a failure of the probes, if it finds a better
// one.
func (r *redisLayer) explain(ctx context.Context, err error) error {
	var reply redis.Error
	answered := errors.As(err, &reply)
	var better error
	switch t := trouble.Of(err); {
	case t.Fault == trouble.FaultScripting || t.Fault == trouble.FaultCommand && !t.Executed:
		role := redis.NewSliceCmd(ctx, "role")
		if r.transport.Do(ctx, role) == nil && len(role.Val()) > 0 && role.Val()[0] == "sentinel" {
			better = trouble.ErrSentinel
		}
	case t.Fault == trouble.FaultPermission && t.Executed, t.Fault == trouble.FaultCommand:
		better = r.runCommands(ctx)
	case !answered && t.Fault == nil && (t.Reason == trouble.Timeout || t.Reason == trouble.Unavailable):
		// A client that cannot connect learns the cause after the deadline of a batch.
		better = r.transport.Do(ctx, batch.Once{Cmd: redis.NewCmd(ctx, "time")})
		if better != nil && trouble.Of(better).Fault == nil {
			if trouble.Dialing(better) {
				return better
			}
			return fmt.Errorf("%w (%w)", err, errSilent)
		}
		// Now there is a connection, so this is the round trip.
		began := time.Now()
		if better == nil && r.transport.Do(ctx, batch.Once{Cmd: redis.NewCmd(ctx, "time")}) == nil && time.Since(began) > r.transport.Deadline {
			r.Late(time.Since(began))
		}
	}
	if trouble.Of(better).Fault != nil {
		return better
	}
	return err
}
