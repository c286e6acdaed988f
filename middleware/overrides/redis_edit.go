// How overrides are written to Redis: one script for each edit.

package overrides

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	ratelimit "github.com/penstock-go/penstock/middleware"
)

// edit sets the override of a key, or clears it if the value is empty, and sets
// the version of the policy. It returns ok, or policies or overrides if there are
// too many of them.
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

// forget removes ended overrides, unless they were set again. The version
// stays, because requests ignore ended overrides anyway.
//
// KEYS  the policy's overrides, the versions
// ARGV  policy, then keys and values
const forget = `
for i = 2, #ARGV, 2 do
	if redis.call('HGET', KEYS[1], ARGV[i]) == ARGV[i + 1] then redis.call('HDEL', KEYS[1], ARGV[i]) end
end
if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('HDEL', KEYS[2], ARGV[1]) end
return 'ok'`

// Set replaces the override of a key. Errors wrap [ErrInvalid] or [ErrFull], or
// are the client's. After these the override may be set; set it again.
func (r *Redis) Set(ctx context.Context, policy, key string, o ratelimit.Override) error {
	if err := validate(policy, key, &o); err != nil {
		return err
	}
	o.Since = time.Now().UTC().Truncate(time.Second)
	value, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("ratelimit: %w", err)
	}
	return r.edit(ctx, policy, key, string(value))
}

// Clear removes the override of a key, if there is one. Errors are Set's.
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
		return fmt.Errorf("ratelimit: redis: %w", err)
	case full == "policies":
		return errPolicies
	case full == "overrides":
		return errPerPolicy(policy)
	}
	_ = r.Refresh(ctx) // it has logged its error; the edit is made, and the next poll finds it
	return nil
}

// eval runs a script on the overrides of a policy. It sends the whole script,
// because edits are rare.
func (r *Redis) eval(ctx context.Context, script, policy string, args ...any) (string, error) {
	cmd := redis.NewCmd(ctx, append([]any{"eval", script, 2, r.policyKey(policy), r.versionsKey()}, args...)...)
	cmd.SetFirstKeyPos(3)
	if err := r.client.Process(ctx, cmd); err != nil {
		return "", err
	}
	return cmd.Text()
}

// List reads from Redis as [Memory.List]. It omits unreadable overrides. Errors
// wrap ErrInvalid, or are the client's.
func (r *Redis) List(ctx context.Context, policy string) (map[string]ratelimit.Override, error) {
	if err := validatePlace(policy, ratelimit.Everyone); err != nil {
		return nil, err
	}
	all := make(map[string]ratelimit.Override)
	err := r.scan(ctx, policy, func(key, value string) {
		if o, err := parse(policy, key, value); err == nil && live(o) {
			all[key] = *o
		}
	})
	if err != nil {
		return nil, fmt.Errorf("ratelimit: redis: %w", err)
	}
	return all, nil
}

// sweep removes ended overrides from Redis, and then from memory.
func (r *Redis) sweep(ctx context.Context) {
	if r.wait(ctx) != nil {
		return // the next sweep tries again
	}
	defer func() { <-r.reading }()
	for policy, e := range r.table.Load().policies {
		if r.forget(ctx, policy, e) {
			r.table.Store(r.table.Load().with(policy, e.swept()))
		}
	}
}

// forget removes ended overrides from Redis. It reports whether there were any,
// and Redis has removed all of them.
func (r *Redis) forget(ctx context.Context, policy string, e *entries) bool {
	var ended []any // keys and values
	for key, o := range e.all {
		if value, err := json.Marshal(o); err == nil && !live(o) {
			ended = append(ended, key, string(value))
		}
	}
	for part := range slices.Chunk(ended, 2*pageSize) {
		if _, err := r.eval(ctx, forget, policy, append([]any{policy}, part...)...); err != nil {
			return false // the next sweep tries again
		}
	}
	return ended != nil
}
