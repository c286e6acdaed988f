package main

// Why bars are missed that are: by what a profile says, and after which
// attempts. The report quotes it for those that its run misses.
const (
	whyServerCPU = "Of the 2.7 µs that a key costs within a batch, SET with PX is 0.9; perf shows the rest flat over Lua's interpreter. " +
		"Tried and kept: one MGET instead of a GET per key, one entry per key and tally instead of one per take, states that Redis stores as " +
		"integers, reading them without patterns. Tried and not better: PXAT, KEEPTTL, INCRBY with an expiry of its own."
	whyThreePolicies = "Two more keys in the same script, and two more items in the headers. Runs of one day were 1.03, 1.38 and 1.48. " +
		"Tried and kept: limits sent once per batch, one buffer for all keys, prepared header values."
	whyHold = "A log whose entries have different costs is read until enough of it has ended: half of it at the worst. Tried and kept: " +
		"reading in blocks, from the nearer end, one LTRIM after a search, less weight in a batch."
	whyMemory = "A fifth of the time is the clock, 15 % the cache miss of the key's record, 14 % the hash. In alternating slices of " +
		"nothing else it was 1.25. Tried and kept: records of 96 bytes, a table that grows by a chain at a time, a path for one take, " +
		"the state in the record itself, names compared by their hash first."
	whyCores = "It is whatever other processes leave of two cores: on a calm machine it was 1.64. Tried and kept: more shards " +
		"than cores, each with counters of its own and on cache lines of its own, one lock per take."
	whyMiddleware = "Of its own part a quarter is Request.WithContext, which FromContext needs, 15 % the verdict in that context, 15 % the key " +
		"and 5 % clocks, for observers; what is promised to handlers and observers alone takes about 520 ns. Tried and kept: one allocation for " +
		"verdict and context, pooled checks, keys and header values without fmt, half the clock's price."
	whyDenial = "The path of an admitted request, four more header fields, and a body. Runs of one day were 0.74 and 1.26 µs. " +
		"Tried and kept: prepared bodies, one allocation for three header values, one lookup of what is remembered."
)
