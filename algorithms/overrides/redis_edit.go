// How overrides are written to Redis: one script for each edit.

package overrides

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"
)

// edit sets the override of a key, or clears it if the value is empty, and the
// version of the policy. It returns 1, or what there are too many of.
//
// KEYS  the policy's overrides, the versions
// ARGV  policy, version, most policies, most overrides, key, value
const edit = `
local overrides, versions = KEYS[1], KEYS[2]
local policy, version, policies, most, key, value = unpack(ARGV)
if value == '' then
	if redis.call('HDEL', overrides, key) == 0 then return 'ok' end
else
	if redis.call('HEXISTS', versions, policy) == 0 and redis.call('HLEN', versions) >= tonumber(policies) then
		return 'policies'
	end
	if redis.call('HEXISTS', overrides, key) == 0 and redis.call('HLEN', overrides) >= tonumber(most) then
		return 'overrides'
	end
	redis.call('HSET', overrides, key, value)
end
if redis.call('EXISTS', overrides) == 1 then
	redis.call('HSET', versions, policy, version)
else
	redis.call('HDEL', versions, policy)
end
return 'ok'`

// forget removes overrides that have ended, unless they were set again since.
// Nobody minds them, so the version stays.
//
// KEYS  the policy's overrides, the versions
// ARGV  policy, then keys and values
const forget = `
for i = 2, #ARGV, 2 do
	if redis.call('HGET', KEYS[1], ARGV[i]) == ARGV[i + 1] then redis.call('HDEL', KEYS[1], ARGV[i]) end
end
if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('HDEL', KEYS[2], ARGV[1]) end
return 'ok'`

// Set sets the override of a key, in place of the one it has. It is in force
// here when Set returns, and within a second elsewhere; also here if Redis no
// longer answered when it was to be read back. Errors wrap
// [ErrInvalid], [ErrFull], or are the client's: then it may have been set or not.
// Doing it again does no harm.
func (r *Redis) Set(ctx context.Context, policy, key string, o Override) error {
	if err := o.Validate(policy, key); err != nil {
		return err
	}
	value, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("overrides: %w", err)
	}
	return r.edit(ctx, policy, key, string(value))
}

// Clear removes the override of a key, if it has one, as Set sets it.
func (r *Redis) Clear(ctx context.Context, policy, key string) error {
	if err := validatePlace(policy, key); err != nil {
		return err
	}
	return r.edit(ctx, policy, key, "")
}

func (r *Redis) edit(ctx context.Context, policy, key, value string) error {
	full, err := r.eval(ctx, edit, policy, policy, rand.Text(), MaxPolicies, MaxPerPolicy, key, value)
	switch {
	case err != nil:
		return fmt.Errorf("overrides: redis: %w", err)
	case full == "policies":
		return fmt.Errorf("overrides: %w: at most %d policies have some", ErrFull, MaxPolicies)
	case full == "overrides":
		return fmt.Errorf("overrides: %w: policy %q has %d", ErrFull, policy, MaxPerPolicy)
	}
	_ = r.Refresh(ctx) // has been reported; the edit itself is made, and the next look finds it
	return nil
}

// eval runs a script on the overrides of a policy. It is sent whole, since
// edits are rare.
func (r *Redis) eval(ctx context.Context, script, policy string, args ...any) (string, error) {
	cmd := redis.NewCmd(ctx, append([]any{"eval", script, 2, r.policyKey(policy), r.versionsKey()}, args...)...)
	cmd.SetFirstKeyPos(3)
	if err := r.client.Process(ctx, cmd); err != nil {
		return "", err
	}
	return cmd.Text()
}

// List returns the overrides of a policy that have not ended, by key, as they
// are in Redis. Those that cannot be read are left out.
func (r *Redis) List(ctx context.Context, policy string) (map[string]Override, error) {
	if err := validatePlace(policy, Everyone); err != nil {
		return nil, err
	}
	all := make(map[string]Override)
	err := r.scan(ctx, policy, func(key, value string) {
		if o, err := parse(policy, key, value); err == nil && o.Live() {
			all[key] = *o
		}
	})
	if err != nil {
		return nil, fmt.Errorf("overrides: redis: %w", err)
	}
	return all, nil
}

// sweep removes what has ended from Redis, and then from memory.
func (r *Redis) sweep(ctx context.Context) {
	r.reading <- struct{}{}
	defer func() { <-r.reading }()
	for policy, e := range r.table.Load().policies {
		if r.forget(ctx, policy, e) {
			r.table.Store(r.table.Load().with(policy, e.swept()))
		}
	}
}

// forget removes from Redis what has ended, and reports whether there was some,
// all of which is gone.
func (r *Redis) forget(ctx context.Context, policy string, e *entries) bool {
	var ended []any // keys and values
	for key, o := range e.all {
		if value, err := json.Marshal(o); err == nil && !o.Live() {
			ended = append(ended, key, string(value))
		}
	}
	for part := range slices.Chunk(ended, 2*pageSize) {
		if _, err := r.eval(ctx, forget, policy, append([]any{policy}, part...)...); err != nil {
			return false // the next time
		}
	}
	return ended != nil
}
