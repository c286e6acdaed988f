package main

// Why bars are missed that are: by what a profile says, and after which
// attempts. The report quotes it for those that its run misses.
const (
	whyServerCPU = "A key costs some 2 µs within a batch: 0.3 to read it, 0.8 for PTTL and INCRBY, which most takes need in the place of SET with PX " +
		"(1.2), 0.3 to decode it, 0.2 for its answer; perf shows the rest flat over Lua's interpreter, and the round trip's share. Tried and kept: " +
		"one MGET instead of a GET per key, one entry per key and tally instead of one per take, states that Redis stores as integers and adds " +
		"to, a TTL with some to spare, reading states without patterns. Tried and not better: PXAT, KEEPTTL with a PEXPIRE. " +
		"Not taken: GETEX, with which every key would stay for a whole burst's time."
	whyAlone = "The script costs some 10 µs in Redis, of which TIME, MGET and SET are 3, and the call two switches between goroutines: it runs " +
		"on a worker's, since go-redis obeys no cancellation while it reads. Runs of one day were 1.03, 1.08, 1.19 and 1.25. Tried and kept: " +
		"pooled workers, a timer and a context per worker, no function in the script that a take does not need. Tried and unsafe: the caller's " +
		"own goroutine."
	whyNetwork       = "At most Options.InFlight batches are under way, two unless it is set. A call waits for a place, up to one round trip, and then a round trip for its answer."
	whyLoopback      = "A call is handed to a worker goroutine and its answer back: two switches, 20 of 70 µs. With few callers, two batches in flight leave Redis idle between them."
	whyTail          = "A call that just misses a batch waits for that one and travels with the next, so the tail holds two round trips and more."
	whyCrowd         = "Eight processes send eight times as many batches, each with an eighth of the callers. The fixed cost of a batch, which is its system calls and the start of its script, is spread over fewer checks."
	whyZipf          = "Only keys that one process takes more often than LeaseOptions.HotAt (500 per second) are leased. The callers are a closed loop: each of them soon draws a key that is not hot, and waits for Redis."
	whyZipfBelow     = "Units on lease in one process are not spent where another process denies in the same window."
	whyThreePolicies = "Takes that hang together are judged, and then charged, by the part of the script that knows all algorithms: of 45 µs in " +
		"Redis 33 are that, and a single take needs none of it. Runs of one day were between 1.26 and 1.63. Tried and kept: limits sent once per " +
		"batch, one buffer for all keys, prepared header values. Tried: to judge and charge in one go, which saves 10 µs, and is wrong for " +
		"keys that are asked about twice."
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
	whyDenial = "The path of an admitted request, four more header fields, and a body. It has been 0.69 to 1.28 µs, by how fast the machine was. " +
		"Tried and kept: prepared bodies, one allocation for three header values, one lookup of what is remembered, by one hash, no context for nobody."
)
