package algorithms

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// A doctor remembers what was found about a Redis and its client.
type doctor struct {
	mu       sync.Mutex // guards what follows
	first    map[string]time.Time
	server   []Finding // when it last said how it is
	examined bool      // it has, or it will not say
	refuses  bool      // it has no right to
}

// Findings returns what is wrong with Redis and its client but does not keep
// limits from working today: eviction that drops limits, a version that nobody
// has tested, and settings of the client that fight the limiter's. RUNBOOK.md
// has all that there may be. Each is observed once, as EventFinding.
//
// It asks Redis for INFO, of a Cluster one node of it. While that cannot be had,
// what it said before counts; a user without the right to it is not an error.
func (r *Redis) Findings(ctx context.Context) []Finding {
	r.examine(ctx)
	r.doctor.mu.Lock()
	all, fresh := r.doctor.since(append(r.settings(), r.doctor.server...))
	r.doctor.mu.Unlock()
	for _, f := range fresh {
		r.observe(Event{Kind: EventFinding, Finding: f})
	}
	return all
}

// Findings returns the primary's, if that has them; see [Redis.Findings].
func (f *Fallback) Findings(ctx context.Context) []Finding {
	if p, ok := f.primary.(interface {
		Findings(context.Context) []Finding
	}); ok {
		return p.Findings(ctx)
	}
	return nil
}

// Findings returns what is wrong with Redis and its client; see
// [Redis.Findings].
func (s *Stack) Findings(ctx context.Context) []Finding { return s.redis.Findings(ctx) }

// since fills in when findings were first found, and returns those that are new.
// It requires mu.
func (d *doctor) since(all []Finding) (_, fresh []Finding) {
	for i := range all {
		f := &all[i]
		if at, known := d.first[f.Code]; known {
			f.First = at
			continue
		}
		if d.first == nil {
			d.first = make(map[string]time.Time)
		}
		f.First = time.Now().UTC()
		d.first[f.Code] = f.First
		fresh = append(fresh, *f)
	}
	return all, fresh
}

// examineOnce examines Redis unless it has been.
func (r *Redis) examineOnce(ctx context.Context) {
	r.doctor.mu.Lock()
	done := r.doctor.examined
	r.doctor.mu.Unlock()
	if !done {
		r.Findings(ctx)
	}
}

// examine asks Redis how it is, if it is to be asked.
func (r *Redis) examine(ctx context.Context) {
	r.doctor.mu.Lock()
	refuses := r.doctor.refuses
	r.doctor.mu.Unlock()
	if c := r.circuit.Load(); refuses || c != nil && c.open.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	var info strings.Builder
	var err error
	for _, section := range []string{"server", "memory"} {
		cmd := redis.NewStringCmd(ctx, "info", section)
		if err = r.command(ctx, cmd); err != nil {
			break
		}
		info.WriteString(cmd.Val())
	}
	r.doctor.mu.Lock()
	defer r.doctor.mu.Unlock()
	r.doctor.refuses = err != nil && strings.HasPrefix(err.Error(), "NOPERM")
	r.doctor.examined = err == nil || r.doctor.refuses
	if err == nil {
		r.doctor.server = judgeInfo(info.String())
	}
}

// judgeInfo returns what INFO shows to be wrong.
func judgeInfo(info string) (all []Finding) {
	fields := make(map[string]string)
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields[name] = value
	}
	if policy := fields["maxmemory_policy"]; policy != "" && policy != "noeviction" && fields["maxmemory"] != "0" {
		all = append(all, Finding{
			Code: "PS201", Sentence: fmt.Sprintf("Redis drops limits when its memory is full, and who was denied begins anew: its maxmemory-policy is %s.", policy),
			Remedy: "Set maxmemory-policy noeviction, in a Redis that is for limits: when it is full, instances limit by themselves.",
		})
	}
	if version := fields["redis_version"]; older(version) {
		all = append(all, Finding{
			Code: "PS202", Sentence: fmt.Sprintf("Redis is of version %s, older than is supported.", version),
			Remedy: "Use Redis 6.2 or later.",
		})
	}
	return all
}

// older reports whether a version is before 6.2. Who does not tell is not.
func older(version string) bool {
	var parts [2]int
	for i, part := range strings.SplitN(version, ".", 3)[:min(2, strings.Count(version, ".")+1)] {
		n, err := strconv.Atoi(part)
		if err != nil {
			return false
		}
		parts[i] = n
	}
	return slices.Compare(parts[:], []int{6, 2}) < 0
}

// settings returns what is wrong with the client's options, as far as those are
// to be seen.
func (r *Redis) settings() (all []Finding) {
	var read, write time.Duration
	pool, endless := 0, false
	switch c := r.client.(type) {
	case interface{ Options() *redis.Options }:
		o := c.Options()
		read, write, pool, endless = o.ReadTimeout, o.WriteTimeout, o.PoolSize, o.ReadTimeout <= 0
	case interface{ Options() *redis.ClusterOptions }:
		o := c.Options()
		read, write = o.ReadTimeout, o.WriteTimeout
	}
	for _, s := range []struct {
		name string
		d    time.Duration
	}{{"ReadTimeout", read}, {"WriteTimeout", write}} {
		if s.d > 0 && s.d < r.timeout {
			all = append(all, Finding{
				Code: "PS203", Sentence: fmt.Sprintf("The client gives up before the limiter does: its %s of %v is shorter than the deadline of %v.", s.name, s.d, r.timeout),
				Remedy: "Make the client's timeouts a little longer than Fallback.Deadline and Redis.Timeout: the limiter keeps its deadline by itself.",
			})
			break
		}
	}
	if endless {
		all = append(all, Finding{
			Code: "PS204", Sentence: "The client waits for replies without end: a Redis that hangs holds its connections for ever.",
			Remedy: "Give the client a ReadTimeout, e.g. of 500ms.",
		})
	}
	if pool > 0 && pool < r.inFlight {
		all = append(all, Finding{
			Code: "PS205", Sentence: fmt.Sprintf("The client has fewer connections than the limiter uses at once: its PoolSize is %d, and InFlight %d.", pool, r.inFlight),
			Remedy: "Raise PoolSize above RedisOptions.InFlight, and by what else the client is used for.",
		})
	}
	return all
}
