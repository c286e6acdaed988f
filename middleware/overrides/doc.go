// Package overrides holds tables of overrides. An override changes the limit of
// one key, of all keys of a policy, or of all policies, while the service runs.
//
// A [Memory] holds the overrides of one process. A [Redis] holds the
// overrides of all instances, and each instance sees an edit within a second:
//
//	table := ratelimit.Must(overrides.NewRedis(rdb, nil))
//	defer table.Close()
//	limited := ratelimit.Must(ratelimit.New(limiter, &ratelimit.Options{Overrides: table}, policies...))
//	...
//	err := table.Set(ctx, "charges", "usr=42", ratelimit.Override{Limit: algorithms.TokenBucket(500, time.Minute)})
//
// A table accepts every text as a key, also one that the policy never makes.
// Package console refuses such keys.
//
// # Which override is in force
//
// The first of these that exists is in force, as a whole:
//
//	Policy   Key       In force for
//	charges  usr=42    that key
//	charges  Everyone  all other keys of the policy
//	All      Everyone  all keys without one of the overrides above; it has only a Mode
//
// Without an override, the middleware uses the limits of the policy.
//
// So a banned key stays banned while all policies are off. An override {} of a
// key (mode on, no limit) exempts the key from the overrides of everyone.
//
// # When to use something else
//
//   - Limits that follow from the client, such as plans: Policy.Tiers. Limits
//     from a customer's row: Policy.LimitOf. An override is the exception.
//   - Changes that belong in the configuration, with its review and history:
//     Middleware.Update. Overrides are for changes that cannot wait. Give them an
//     Until.
//   - Millions of keys: a policy has at most [MaxPerPolicy] overrides, and each
//     instance holds all of them in memory.
//   - A limit to try first: Policy.Candidate, which counts beside Policy.Limit.
//   - Authorization: an override changes how often a client may call, never
//     whether. A policy that is off or in shadow for everyone refuses no request
//     for its missing identity.
package overrides
