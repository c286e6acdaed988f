// How overrides are read from Redis: only policies whose version has changed.

package overrides

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// pageSize is about how many overrides one command reads.
const pageSize = 500

// Stored keys. A principal that begins with '#' is no limiter's: they digest
// such keys.
func (r *Redis) versionsKey() string        { return r.prefix + ":{#overrides}:versions" }
func (r *Redis) policyKey(of string) string { return r.prefix + ":{#overrides}:of:" + of }

// read reads the policies whose versions are not those in memory. It requires
// the place in reading.
// Versions are random rather than counted: a Redis that has lost its data would
// count again from one. They are read first, so that an edit in between is seen
// as another the next time.
func (r *Redis) read(ctx context.Context) error {
	cmd := redis.NewMapStringStringCmd(ctx, "hgetall", r.versionsKey())
	if err := r.client.Process(ctx, cmd); err != nil {
		return err
	}
	versions, now := cmd.Val(), r.table.Load()
	next := &table{policies: make(map[string]*entries, len(versions))}
	changed, failed := len(versions) != len(now.policies), error(nil)
	for policy, version := range versions {
		known := now.policies[policy]
		if known != nil && known.version == version {
			next.policies[policy] = known
			continue
		}
		e, err := r.readPolicy(ctx, policy, version, known)
		if err != nil {
			failed = err
			if e = known; e == nil {
				continue
			}
		}
		next.policies[policy], changed = e, true
	}
	if changed {
		r.table.Store(next)
		r.countBad(next)
	}
	return failed
}

// readPolicy reads the overrides of a policy. Of those that cannot be read it
// keeps what was known.
func (r *Redis) readPolicy(ctx context.Context, policy, version string, known *entries) (*entries, error) {
	r.stats.reads.Add(1)
	e, bad, last := &entries{version: version}, 0, error(nil)
	err := r.scan(ctx, policy, func(key, value string) {
		o, err := parse(policy, key, value)
		if err != nil {
			bad, last = bad+1, err
			o = known.get(key)
		}
		switch {
		case o == nil:
		case e.n >= MaxPerPolicy && e.get(key) == nil: // not written by Set
			bad, last = bad+1, fmt.Errorf("overrides: %w: policy %q has more than %d", ErrFull, policy, MaxPerPolicy)
		default:
			e.put(key, o)
		}
	})
	if err != nil {
		return nil, err
	}
	if bad > r.bad[policy] {
		r.logger.Warn("ratelimit: overrides in Redis mean nothing; the last good ones stay in force",
			"policy", policy, "overrides", bad, "error", last)
	}
	r.bad[policy] = bad
	return e, nil
}

// countBad forgets what was bad in policies that are gone, and counts the rest.
// It requires the place in reading.
func (r *Redis) countBad(t *table) {
	n := 0
	for policy, bad := range r.bad {
		if t.policies[policy] == nil {
			delete(r.bad, policy)
			continue
		}
		n += bad
	}
	r.stats.bad.Store(int64(n))
}

// scan yields what is stored of a policy. HSCAN pages through one hash, where
// HGETALL of 100 000 fields would hold everybody up for a tenth of a second. It
// may yield an override twice.
func (r *Redis) scan(ctx context.Context, policy string, yield func(key, value string)) error {
	for cursor := uint64(0); ; {
		cmd := redis.NewScanCmd(ctx, r.client.Process, "hscan", r.policyKey(policy), cursor, "count", pageSize)
		if err := r.client.Process(ctx, cmd); err != nil {
			return err
		}
		var page []string
		page, cursor = cmd.Val()
		for i := 0; i+1 < len(page); i += 2 {
			yield(page[i], page[i+1])
		}
		if cursor == 0 {
			return nil
		}
	}
}

// parse reads a stored override. One that has ended is good.
func parse(policy, key, value string) (*Override, error) {
	o, d := new(Override), json.NewDecoder(bytes.NewReader([]byte(value)))
	d.DisallowUnknownFields()
	if err := d.Decode(o); err != nil {
		return nil, fmt.Errorf("overrides: %w of policy %q: %w", ErrInvalid, policy, err)
	}
	if d.More() {
		return nil, fmt.Errorf("overrides: %w of policy %q: more than one value", ErrInvalid, policy)
	}
	if !o.Live() {
		return o, nil
	}
	return o, o.Validate(policy, key)
}
