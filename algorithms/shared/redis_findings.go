// Findings about Redis and its client: what is wrong but does not keep limits
// from working today.
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
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
)

// A doctor remembers what was found.
type doctor struct {
	mu       sync.Mutex // guards the fields below
	first    map[string]time.Time
	server   []algorithms.Finding // of Redis's last answer
	examined bool                 // Redis has answered, or refuses to
	refuses  bool                 // the user has no permission for INFO
}

// findings implements [Limiter.Findings].
func (r *redisLayer) findings(ctx context.Context) []algorithms.Finding {
	r.examine(ctx)
	r.doctor.mu.Lock()
	all, fresh := r.doctor.since(append(r.settings(), r.doctor.server...))
	r.doctor.mu.Unlock()
	for _, f := range fresh {
		r.report.found(f)
	}
	return all
}

// since fills in when findings were first found, and returns the new ones. It
// requires mu.
func (d *doctor) since(all []algorithms.Finding) (_, fresh []algorithms.Finding) {
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

// examineOnce examines Redis unless that is done.
func (r *redisLayer) examineOnce(ctx context.Context) {
	r.doctor.mu.Lock()
	done := r.doctor.examined
	r.doctor.mu.Unlock()
	if !done {
		r.findings(ctx)
	}
}

// examine asks Redis for INFO, unless Redis refuses that or is bypassed.
func (r *redisLayer) examine(ctx context.Context) {
	r.doctor.mu.Lock()
	refuses := r.doctor.refuses
	r.doctor.mu.Unlock()
	if refuses || r.circuit != nil && r.circuit.open.Load() {
		return
	}
	info, err := r.info(ctx, "server", "memory")
	r.doctor.mu.Lock()
	defer r.doctor.mu.Unlock()
	r.doctor.refuses = err != nil && strings.HasPrefix(err.Error(), "NOPERM")
	r.doctor.examined = err == nil || r.doctor.refuses
	if err == nil {
		r.doctor.server = judgeInfo(info)
	}
}

// info returns sections of INFO. Redis 6.2 has one section per command, and a
// client of a Cluster may refuse INFO in pipelines.
func (r *redisLayer) info(ctx context.Context, sections ...string) (string, error) {
	var all strings.Builder
	for _, section := range sections {
		cmd := redis.NewStringCmd(ctx, "info", section)
		if err := r.do(ctx, 0, cmd); err != nil {
			return "", err
		}
		all.WriteString(cmd.Val())
	}
	return all.String(), nil
}

// judgeInfo returns the problems that INFO shows.
func judgeInfo(info string) (all []algorithms.Finding) {
	fields := make(map[string]string)
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields[name] = value
	}
	if policy := fields["maxmemory_policy"]; policy != "" && policy != "noeviction" && fields["maxmemory"] != "0" {
		all = append(all, algorithms.Finding{
			Code:     "PS201",
			Sentence: fmt.Sprintf("Redis evicts limits when its memory is full, and denied clients start again: its maxmemory-policy is %s.", policy),
			Remedy:   "Set maxmemory-policy noeviction, in a Redis that only holds limits. When that is full, instances limit alone.",
		})
	}
	if version := fields["redis_version"]; older(version) {
		all = append(all, algorithms.Finding{
			Code:     "PS202",
			Sentence: fmt.Sprintf("Redis has version %s, which is too old.", version),
			Remedy:   "Use Redis 6.2 or later.",
		})
	}
	return all
}

// older reports whether a version is before 6.2. An unknown version is not.
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

// settings returns the problems of the client's options, as far as the client
// shows them.
func (r *redisLayer) settings() (all []algorithms.Finding) {
	var read, write time.Duration
	pool, endless := 0, false
	switch c := r.client.(type) {
	case interface{ Options() *redis.Options }:
		o := c.Options()
		read, write, pool, endless = o.ReadTimeout, o.WriteTimeout, o.PoolSize, o.ReadTimeout <= 0
	case clusterClient:
		o := c.Options()
		read, write = o.ReadTimeout, o.WriteTimeout
	}
	if f, found := r.impatient(read, write); found {
		all = append(all, f)
	}
	if endless {
		all = append(all, algorithms.Finding{
			Code:     "PS204",
			Sentence: "The client waits for replies without end: a Redis that hangs holds its connections for ever.",
			Remedy:   "Give the client a ReadTimeout, e.g. of 500ms.",
		})
	}
	if pool > 0 && pool < r.inFlight {
		all = append(all, algorithms.Finding{
			Code:     "PS205",
			Sentence: fmt.Sprintf("The client has fewer connections than the limiter uses at once: its PoolSize is %d, and InFlight is %d.", pool, r.inFlight),
			Remedy:   "Raise PoolSize above Options.InFlight, plus the connections that the client's other uses need.",
		})
	}
	return all
}

// impatient returns the finding about a client that gives up before the
// deadline.
func (r *redisLayer) impatient(read, write time.Duration) (algorithms.Finding, bool) {
	name, timeout := "ReadTimeout", read
	if read <= 0 || read >= r.deadline {
		name, timeout = "WriteTimeout", write
	}
	if timeout <= 0 || timeout >= r.deadline {
		return algorithms.Finding{}, false
	}
	return algorithms.Finding{
		Code:     "PS203",
		Sentence: fmt.Sprintf("The client gives up before the limiter does: its %s of %v is shorter than the deadline of %v.", name, timeout, r.deadline),
		Remedy:   "Make the client's timeouts a little longer than Options.Deadline. The limiter keeps its deadline by itself.",
	}, true
}
