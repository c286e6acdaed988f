// Package overrides holds tables of overrides. An override changes the limit of one key, of all keys of a policy, or of
// all policies, while the service runs.
//
// A [Memory] holds the overrides of one process. A [Redis] holds the overrides of all instances, and each instance sees
// an edit within a second:
//
//	table := ratelimit.Must(overrides.NewRedis(rdb, nil))
//	defer table.Close()
//	limited := ratelimit.Must(ratelimit.New(limiter, &ratelimit.Options{Overrides: table}, policies...))
//	...
//	err := table.Set(ctx, "charges", "usr=42", ratelimit.Override{Limit: algorithms.TokenBucket(500, time.Minute)})
//
// The first of these that exists is in force, as a whole:
//
//	Policy   Key       In force for
//	charges  usr=42    that key
//	charges  Everyone  all other keys of the policy
//	All      Everyone  all keys without one of the overrides above; it has only a Mode
//
// A table accepts every text as a key; package console refuses keys that the policy never makes.
//
// # When to use something else
//
//   - Limits that follow from the client: Policy.Tiers or Policy.LimitOf. An override is the exception; give it an
//     Until.
//   - Changes of the configuration: Middleware.Update.
//   - Millions of keys: each instance holds all overrides in memory.
//   - Authorization: a policy that is off for everyone refuses no missing identity.
package overrides
