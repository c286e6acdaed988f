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
	asked atomic.Bool // Redis has answered, or refuses INFO
	first atomic.Pointer[time.Time]
}

// findings implements [Limiter.Findings].
func (r *redisLayer) findings(ctx context.Context) []algorithms.Finding {
	policy, err := r.evictionPolicy(ctx)
	e := &r.eviction
	if err != nil {
		e.asked.Store(strings.HasPrefix(err.Error(), "NOPERM"))
		return nil
	}
	if e.asked.Store(true); policy == "" {
		e.first.Store(nil) // its return counts as new
		return nil
	}
	now := time.Now().UTC()
	first, begins := &now, e.first.CompareAndSwap(nil, &now)
	if known := e.first.Load(); known != nil {
		first = known
	}
	f := algorithms.Finding{
		Code:     "PS201",
		Sentence: fmt.Sprintf("Redis evicts limits when its memory is full, and denied clients start again: its maxmemory-policy is %s.", policy),
		Remedy:   "Set maxmemory-policy noeviction, in a Redis that only holds limits. When that is full, instances limit alone.",
		First:    *first,
	}
	if begins {
		r.report.log.Add(slog.LevelWarn, "configuration problem", "code", f.Code, "problem", f.Sentence, "remedy", f.Remedy)
	}
	return []algorithms.Finding{f}
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
