// Findings about Redis and its client: settings that are wrong, although limits
// work today.
//
//	PS201  Redis evicts keys when its memory is full.
//	PS202  The version of Redis is too old.
//	PS203  The client's timeouts are shorter than the deadline.
//	PS204  The client waits for replies without end.
//	PS205  The client has fewer connections than there are batches in flight.

package shared

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
)

// A doctor remembers the findings.
type doctor struct {
	first     sync.Map     // code -> the time.Time at which it was first found
	dismissed sync.Map     // code -> the time.Time at which an operator dismissed it
	info      atomic.Value // map[string]string: the fields of Redis's last answer
	refused   atomic.Bool  // the user has no permission for INFO
	decided   atomic.Bool  // Redis has decided the probes of ready
}

// findings implements [Limiter.Findings].
func (r *redisLayer) findings(ctx context.Context) (all []algorithms.Finding) {
	r.examine(ctx)
	find := func(wrong bool, code, remedy, sentence string, args ...any) {
		if !wrong {
			r.doctor.first.Delete(code) // its return counts as new
			r.doctor.dismissed.Delete(code)
			return
		}
		first, known := r.doctor.first.LoadOrStore(code, time.Now().UTC())
		f := algorithms.Finding{Code: code, Sentence: fmt.Sprintf(sentence, args...), Remedy: remedy, First: first.(time.Time)}
		if at, found := r.doctor.dismissed.Load(code); found {
			f.Dismissed = at.(time.Time)
		}
		all = append(all, f)
		if !known {
			r.report.found(f)
		}
	}

	read, write, pool, endless := r.settings()
	name, timeout := "ReadTimeout", read
	if read <= 0 || read >= r.deadline {
		name, timeout = "WriteTimeout", write
	}
	find(timeout > 0 && timeout < r.deadline, "PS203",
		"Make the client's timeouts longer than Options.Deadline, e.g. 500ms. The limiter keeps its deadline by itself.",
		"The client gives up before the limiter does: its %s of %v is shorter than the deadline of %v.", name, timeout, r.deadline)
	find(endless, "PS204",
		"Give the client a ReadTimeout, e.g. of 500ms.",
		"The client waits for replies without end: a Redis that hangs holds its connections for ever.")
	find(pool > 0 && pool < r.inFlight, "PS205",
		"Raise PoolSize above Options.InFlight, plus the connections that the client's other uses need.",
		"The client has fewer connections than the limiter uses at once: its PoolSize is %d, and InFlight is %d.", pool, r.inFlight)

	info, _ := r.doctor.info.Load().(map[string]string)
	policy, version := info["maxmemory_policy"], info["redis_version"]
	find(policy != "" && policy != "noeviction" && info["maxmemory"] != "0", "PS201",
		"Set maxmemory-policy noeviction, in a Redis that only holds limits. When that is full, instances limit alone.",
		"Redis evicts limits when its memory is full, and denied clients start again: its maxmemory-policy is %s.", policy)
	find(older(version), "PS202",
		"Use Redis 6.2 or later.",
		"Redis has version %s, which is too old.", version)
	return all
}

// dismiss implements [Limiter.Dismiss].
func (r *redisLayer) dismiss(code string) bool {
	if _, found := r.doctor.first.Load(code); !found {
		return false
	}
	r.doctor.dismissed.Store(code, time.Now().UTC())
	return true
}

// examine asks Redis for INFO, unless Redis refuses that or is bypassed. Redis 6.2
// has one section per command, and a client of a Cluster may refuse INFO in
// pipelines.
func (r *redisLayer) examine(ctx context.Context) {
	if r.doctor.refused.Load() || r.circuit != nil && r.circuit.open.Load() {
		return
	}
	info := make(map[string]string)
	for _, section := range []string{"server", "memory"} {
		cmd := redis.NewStringCmd(ctx, "info", section)
		if err := r.do(ctx, cmd); err != nil {
			r.doctor.refused.Store(strings.HasPrefix(err.Error(), "NOPERM"))
			return
		}
		for line := range strings.Lines(cmd.Val()) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			info[name] = value
		}
	}
	r.doctor.info.Store(info)
}

// older reports whether a version is before 6.2. An unknown version is not.
func older(version string) bool {
	var major, minor int
	known, _ := fmt.Sscanf(version, "%d.%d", &major, &minor)
	return known > 0 && (major < 6 || major == 6 && minor < 2)
}

// settings returns the client's options, if the client shows them. endless: the
// client waits for a reply for ever.
func (r *redisLayer) settings() (read, write time.Duration, pool int, endless bool) {
	switch c := r.client.(type) {
	case interface{ Options() *redis.Options }:
		o := c.Options()
		return o.ReadTimeout, o.WriteTimeout, o.PoolSize, o.ReadTimeout <= 0
	case clusterClient:
		o := c.Options()
		return o.ReadTimeout, o.WriteTimeout, o.PoolSize, false
	}
	return 0, 0, 0, false
}
