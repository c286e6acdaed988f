// Package overrides, which a minor version may change, holds tables of overrides, which change limits while the service runs.
//
// A [Memory] holds the overrides of one process, a [Redis] those of all instances:
//
//	table := ratelimit.Must(overrides.NewRedis(rdb, limiter, nil))
//	defer table.Close()
//	limited := ratelimit.Must(ratelimit.New(limiter, &ratelimit.Options{Overrides: table}, policies...))
//	...
//	err := table.Set(ctx, "charges", "usr=42", ratelimit.Override{Limit: algorithms.TokenBucket(500, time.Minute)})
//
// The first of these is in force:
//
//	Policy   Key                   In force for
//	charges  usr=42|rt=GET%20/v1   that key
//	charges  usr=42                the key usr=42, and all keys that begin with this part: usr=42|rt=GET%20/v1
//	charges  Everyone              all other keys of the policy
//	All      usr=42                the same keys as charges, usr=42, in all policies
//	All      Everyone              all other keys of all policies
//
// An override of all policies has only a Mode, because policies share no limit. The
// zero Override exempts its key or part from the overrides below it.
//
// Keys are texts of keyfunc. Set accepts every policy and key, and a wrong one
// changes nothing; package console refuses it.
//
// # When to use something else
//
//   - Limits that follow from the client: Policy.Tiers or Policy.LimitOf. Give an override an Until.
//   - Changes of the configuration: Middleware.Update.
//   - Millions of keys: each instance holds all overrides in memory.
//   - Overrides in a store of yours: implement ratelimit.Overrides, and test it with overridestest.
//   - Authorization: a policy that is off for everyone refuses no missing identity.
package overrides
