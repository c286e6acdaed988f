// How overrides are read from Redis: only policies whose version has changed.

package overrides

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"

	"github.com/redis/go-redis/v9"

	ratelimit "github.com/penstock-go/penstock/middleware"
)

// pageSize is the approximate number of overrides that one command reads.
const pageSize = 500

// Stored keys. No limiter stores a principal that begins with '#': limiters digest
// such keys.
func (r *Redis) versionsKey() string        { return r.prefix + ":{#overrides}:versions" }
func (r *Redis) policyKey(of string) string { return r.prefix + ":{#overrides}:of:" + of }

// read reads the policies whose versions differ from the versions in memory. It
// requires the place in reading.
//
// Versions are random. Counted versions would begin again with one after Redis has
// lost its data. read reads them before the overrides, so that the next reading
// finds an edit that happens in between.
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
		maps.DeleteFunc(r.bad, func(policy string, _ int) bool { return next.policies[policy] == nil })
	}
	return failed
}

// readPolicy reads the overrides of a policy. If the stored override of a key
// is unreadable, it keeps the known override.
func (r *Redis) readPolicy(ctx context.Context, policy, version string, known *entries) (*entries, error) {
	e, bad, last := &entries{version: version}, 0, error(nil)
	err := r.scan(ctx, policy, func(key, value string) {
		o, err := parse(policy, key, value)
		if err != nil {
			bad, last = bad+1, err
			o = known.get(key)
		}
		switch {
		case o == nil:
		case e.n >= MaxPerPolicy && e.get(key) == nil: // another program wrote it
			bad, last = bad+1, errPerPolicy(policy)
		default:
			e.put(key, o)
		}
	})
	if err != nil {
		return nil, err
	}
	if bad > r.bad[policy] {
		r.log.Add(slog.LevelWarn, "unreadable overrides in Redis", "policy", policy, "overrides", bad, "error", last)
	}
	r.bad[policy] = bad
	return e, nil
}

// scan yields the stored overrides of a policy. It may yield an override twice.
// HSCAN reads one page of the hash at a time: HGETALL of 100 000 fields would
// block Redis for a tenth of a second.
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

// parse reads a stored override. An ended override is valid.
func parse(policy, key, value string) (*ratelimit.Override, error) {
	o, d := new(ratelimit.Override), json.NewDecoder(bytes.NewReader([]byte(value)))
	d.DisallowUnknownFields()
	if err := d.Decode(o); err != nil {
		return nil, invalid(policy, "%w", err)
	}
	if d.More() {
		return nil, invalid(policy, "more than one JSON value")
	}
	if !live(o) {
		return o, nil
	}
	return o, validate(policy, key, o)
}
