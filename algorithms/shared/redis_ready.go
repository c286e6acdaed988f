// Whether Redis can decide. Until it has done so once, Ready examines failures
// closely, because most misconfigured programs are misconfigured from their
// start.

package shared

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
)

// errSentinel is the cause of a misconfiguration that a sentinel's own words
// hide.
var errSentinel = errors.New("the server is a Sentinel")

// ready implements [Limiter.Ready], without the circuit. Once Redis can decide,
// ready also reports findings.
func (r *redisLayer) ready(ctx context.Context) error {
	decide := r.decideProbes
	if !r.doctor.decided.Load() {
		decide = r.decideFirst
	}
	if err := decide(ctx); err != nil {
		return notReady(err)
	}
	if r.doctor.info.Load() == nil && !r.doctor.refused.Load() {
		r.findings(ctx)
	}
	return nil
}

// decideFirst is decideProbes for a Redis that has not decided them before.
func (r *redisLayer) decideFirst(ctx context.Context) error {
	r.report.readies.Add(1)
	err := r.decideProbes(ctx)
	r.report.readies.Add(-1)
	if err == nil {
		err = r.runCommands(ctx)
	} else {
		err = r.explain(ctx, err)
	}
	if troubleOf(err).fault != nil {
		r.report.misconfigured.Store(true)
	}
	r.doctor.decided.Store(err == nil)
	return err
}

// readyPolicy's suffix distinguishes it from all policies of callers.
const readyPolicy = "penstock~ready"

// probes are the calls of ready. Most scripts are takes, of a new key and of a
// stored key. The settlements between them write a log and delete keys, and
// cannot be in one call with takes. The keys lie in different quarters of the
// slots of a Cluster, so that a missing master shows.
func probes() [3][]algorithms.Check {
	bucket := algorithms.TokenBucket(10, time.Second)
	window := algorithms.FixedWindow(1, time.Millisecond)
	log := algorithms.SlidingWindowLog(10, time.Millisecond)
	return [3][]algorithms.Check{
		{{Policy: readyPolicy, Key: readyKeys[0], Limit: bucket, Cost: 1}},
		{{Policy: readyPolicy, Key: readyKeys[0], Limit: bucket, Cost: 1}},
		{
			{Policy: readyPolicy, Key: readyKeys[1], Limit: log, Cost: 1, Op: algorithms.Force},
			{Policy: readyPolicy, Key: readyKeys[1], Limit: log, Cost: 1, Op: algorithms.Force},
			{Policy: readyPolicy, Key: readyKeys[2], Limit: window, Op: algorithms.Reset},
			{Policy: readyPolicy, Key: readyKeys[3], Limit: window, Op: algorithms.Reset},
		},
	}
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

// keyArg stands for a key among arguments.
type keyArg struct{}

// scriptCommands are the commands of the script, which package lua lists. With
// these arguments they store nothing: most of them fail, because the key holds
// a string.
var scriptCommands = [][]any{
	{"time"},
	{"set", keyArg{}, 0, "px", 1000},
	{"psetex", keyArg{}, 1000, 0},
	{"get", keyArg{}},
	{"mget", keyArg{}},
	{"incrby", keyArg{}, 0},
	{"pttl", keyArg{}},
	{"pexpire", keyArg{}, 1000},
	{"lindex", keyArg{}, 0},
	{"llen", keyArg{}},
	{"lrange", keyArg{}, 0, 0},
	{"lrem", keyArg{}, 0, 0},
	{"lset", keyArg{}, 0, 0},
	{"ltrim", keyArg{}, 0, 0},
	{"rpush", keyArg{}, 0},
	{"zadd", keyArg{}, 0, 0},
	{"zcard", keyArg{}},
	{"zrange", keyArg{}, 0, 0},
	{"zrangebyscore", keyArg{}, 0, 0},
	{"zrem", keyArg{}, 0},
	{"zremrangebyrank", keyArg{}, 0, 0},
	{"zremrangebyscore", keyArg{}, 0, 0},
	{"zscore", keyArg{}, 0},
	{"del", keyArg{}},
}

// runCommands runs each command of the script outside of it: a missing or denied
// command would otherwise show only once an algorithm needs it. Redis then names
// the command, which it does not do for scripts. In a Cluster, several nodes run
// the commands, because each has its own permissions.
func (r *redisLayer) runCommands(ctx context.Context) error {
	keys := readyKeys[:1]
	if r.cluster {
		keys = readyKeys[:]
	}
	for _, key := range keys {
		commands := make([]redis.Cmder, len(scriptCommands))
		for i, command := range scriptCommands {
			args := make([]any, len(command))
			for j, arg := range command {
				if arg == (keyArg{}) {
					arg = r.prefix + "{" + key + "}:" + readyPolicy
				}
				args[j] = arg
			}
			commands[i] = redis.NewCmd(ctx, args...)
		}
		_ = r.do(ctx, commands...) // errors of keys are the first of all errors
		for _, cmd := range commands {
			if err := ownDeadline(cmd.Err()); err != nil && troubleOf(err).reason != reasonKey {
				return err
			}
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
	switch t := troubleOf(err); {
	case t.fault == faultScripting || t.fault == faultCommand && !t.executed:
		role := redis.NewSliceCmd(ctx, "role")
		if r.do(ctx, role) == nil && len(role.Val()) > 0 && role.Val()[0] == "sentinel" {
			better = errSentinel
		}
	case t.fault == faultPermission && t.executed, t.fault == faultCommand:
		better = r.runCommands(ctx)
	case !answered && (t.reason == reasonTimeout || t.reason == reasonUnavailable):
		better = r.look(ctx)
	}
	if troubleOf(better).fault != nil {
		return better
	}
	if errors.Is(better, errSilent) {
		return fmt.Errorf("%w (%w)", err, errSilent)
	}
	return err
}
