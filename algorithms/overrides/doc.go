// Package overrides changes limits while a service runs: of one key, of all
// keys of a policy, or of everything.
//
// An [Override] is of a policy and a key. A [Memory] holds those of one
// process, a [Redis] those of all instances, which see an edit within a second:
//
//	table := algorithms.Must(overrides.NewRedis(rdb, nil))
//	defer table.Close()
//	limited := ratelimit.Must(ratelimit.New(limiter, &ratelimit.Options{Overrides: table}, policies...))
//	...
//	err := table.Set(ctx, "charges", "usr=42", overrides.Override{Limit: algorithms.TokenBucket(500, time.Minute)})
//
// # Which override is in force
//
// The first that there is, whole, and no other:
//
//	Policy   Key        Says
//	charges  usr=42     what holds for that key
//	charges  Everyone   what holds for all other keys of the policy
//	All      Everyone   a switch for all policies: its Mode, for keys of which
//	                    nothing above says otherwise
//	(none)   (none)     otherwise: the tier's limit, or the policy's own
//
// So a key that is banned stays banned when all policies are Off, and a key's
// override of {} (On, no Limit) exempts it from what is said of everyone.
//
// # When to use something else
//
//   - Limits that follow from who is asking, such as plans: Policy.Tiers. An
//     override is the exception to them.
//   - Changes that belong in the configuration, with its review and history:
//     Middleware.Update. Overrides are for what cannot wait for that, and best
//     have an Until.
//   - Millions of keys: a policy has at most [MaxPerPolicy], each in the memory
//     of each instance.
//   - A limit that is to be tried first: Policy.Candidate, which counts beside
//     the live one.
//   - Secrets, passwords, authorization: an override changes how often. Whom a
//     policy's key lets in, it does only while the policy is asked: a policy that
//     is Off or in Shadow for everyone asks nobody.
package overrides
