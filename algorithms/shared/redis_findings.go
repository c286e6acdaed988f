// The finding about Redis: a setting that is wrong, although limits work today.
//
//	PS201  Redis evicts keys when its memory is full.

package shared

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
)

// An eviction is what is known of Redis's policy for a full memory.
type eviction struct {
	asked atomic.Bool                        // Redis has answered, or refuses INFO
	found atomic.Pointer[algorithms.Finding] // by the latest answer; nil if there was nothing
}

// findings implements [Limiter.Findings].
func (r *redisLayer) findings(ctx context.Context) []algorithms.Finding {
	policy, err := r.evictionPolicy(ctx)
	e := &r.eviction
	e.asked.Store(err == nil || strings.HasPrefix(err.Error(), "NOPERM"))
	switch known := e.found.Load(); {
	case err != nil:
	case policy == "":
		e.found.Store(nil) // its return counts as new
	default:
		f := &algorithms.Finding{
			Code:     "PS201",
			Sentence: fmt.Sprintf("Redis evicts limits when its memory is full, and denied clients start again: its maxmemory-policy is %s.", policy),
			Remedy:   "Set maxmemory-policy noeviction, in a Redis that only holds limits. When that is full, instances limit alone.",
			First:    time.Now().UTC(),
		}
		if known != nil {
			f.First = known.First
		}
		if e.found.CompareAndSwap(known, f) && known == nil {
			r.report.log.Add(slog.LevelWarn, "configuration problem", "code", f.Code, "problem", f.Sentence, "remedy", f.Remedy)
		}
	}
	if found := e.found.Load(); found != nil {
		return []algorithms.Finding{*found}
	}
	return nil
}

// evictionPolicy asks Redis by which policy it evicts keys; "" if it does not.
func (r *redisLayer) evictionPolicy(ctx context.Context) (string, error) {
	if _, open := r.circuits.openNow(); open > 0 {
		return "", errOpen
	}
	cmd := redis.NewStringCmd(ctx, "info", "memory")
	if err := r.do(ctx, cmd); err != nil {
		return "", err
	}
	info := make(map[string]string)
	for line := range strings.Lines(cmd.Val()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		info[name] = value
	}
	if policy := info["maxmemory_policy"]; policy != "noeviction" && info["maxmemory"] != "0" {
		return policy, nil
	}
	return "", nil
}
