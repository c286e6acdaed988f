// The findings about Redis: settings that are wrong, although limits work today.
//
//	PS201  Redis evicts keys when its memory is full.
//	PS202  Several limiters share Redis, and Options.Instances is not set.
//	PS203  A Cluster's client waits before it follows a redirection.
//
// PS204 is not about Redis: see views_findings.go.

package shared

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
)

// findingCodes are the codes of all findings.
var findingCodes = []string{"PS201", "PS202", "PS203", "PS204"}

// findings implements [Limiter.Findings].
func (r *redisLayer) findings(ctx context.Context) []algorithms.Finding {
	policy, err := r.evictionPolicy(ctx)
	r.informed.Store(err == nil || strings.HasPrefix(err.Error(), "NOPERM"))
	if err == nil {
		r.report.find(policy != "", "PS201", fmt.Sprintf("Redis evicts limits when its memory is full, and denied clients start again: its maxmemory-policy is %s.", policy),
			"In a Redis that only holds limits, raise maxmemory first, and then set maxmemory-policy noeviction. If it is shared with a cache, give the limits a Redis of their own.")
	}
	r.report.find(r.cluster != nil && r.cluster.Options().MinRetryBackoff > 0, "PS203",
		"While a slot of the Cluster moves, the calls of its whole master wait: the client sleeps before it follows a redirection.",
		"Set MinRetryBackoff and MaxRetryBackoff of the limiter's redis.ClusterOptions to -1.")
	r.report.mu.Lock()
	defer r.report.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.report.found), func(a, b algorithms.Finding) int { return strings.Compare(a.Code, b.Code) })
}

// evictionPolicy asks Redis by which policy it evicts keys; "" if it does not.
func (r *redisLayer) evictionPolicy(ctx context.Context) (string, error) {
	if r.circuits.AnyOpen() {
		return "", trouble.ErrOpen
	}
	cmd := redis.NewStringCmd(ctx, "info", "memory")
	if err := r.transport.Do(ctx, cmd); err != nil {
		return "", err
	}
	_, text, _ := strings.Cut(cmd.Val(), "\nmaxmemory_policy:")
	policy, _, _ := strings.Cut(text, "\n")
	if policy = strings.TrimSpace(policy); policy == "noeviction" || strings.Contains(cmd.Val(), "\nmaxmemory:0") {
		policy = ""
	}
	return policy, nil
}
