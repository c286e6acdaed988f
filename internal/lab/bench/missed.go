package main

// The reasons why bars are missed, by profiles, and the remedies that were tried. If
// a run misses a bar, its report quotes the reason.
const (
	whyServerCPU = "A key costs about 1.7 µs within a batch: 0.3 to read it, 0.5 for INCRBY, which most takes need instead of SET with PX (1.2), " +
		"0.3 to decode it, and 0.2 for its answer. The rest is Lua's interpreter and the key's share of the round trip. Tried and kept: one MGET instead of a GET per key, " +
		"one entry per key and tally, states that Redis stores as integers, a TTL that follows from the state, reading states without patterns. " +
		"Tried and not better: PXAT, KEEPTTL with a PEXPIRE, the whole number parsed at once. Not taken: GETEX, because every key would then stay for a whole burst's time."
	whyAlone = "The script costs Redis less than the bare script. The caller sends its batch itself, in 89 functions: they validate the check, look for a remembered " +
		"denial, ask the circuit, pack the script, start a timer for the deadline, and compute the figures."
	whyNetwork = "With as many callers as places in flight, most checks travel alone, and each costs Redis 15 µs. A fixed window by two commands, as in ulule/limiter, costs 12. Redis answers all that it has read " +
		"together, so each further microsecond delays several answers. With four times as many callers, half of the batches are one call that missed a batch, and when all places are taken, some calls wait for a whole round trip. " +
		"Tried and kept: a place in flight for each 50 µs of the round trip instead of 100, four fifths of the pool instead of half, and workers that wait for all callers that they have woken. " +
		"Tried and not better: 33 and 40 µs, the whole pool, a place for each lone caller, lone callers that let others join their batch, few calls that wait for a batch whose answer is due, workers that wait only if more callers wake up than have places. " +
		"With 25 µs instead of 50 for a call that is alone in the queue, 16 callers made 3 % more checks in a new process, and 5 % fewer after other measures. " +
		"In six runs in which idle processors slept, the worst row had 0.91 to 0.95 of the best peer's checks; in three in which they were awake, 0.96 to 0.97."
	whyLoopback = "On one machine the CPU is the limit: clients, Redis and the measuring program share two cores. At most 2 batches are in flight, and a small batch costs more per check than a large one. " +
		"A fixed window by two commands costs Redis less, and go-redis alone hands no call to another goroutine. Tried and kept: while fewer than 4 calls are in flight, each travels alone. Tried and not better: the same with 8, lone callers that let others join."
	whyTail  = "A call that just misses a batch waits for the next place in flight. Small batches of many connections also wait for each other in Redis."
	whyCrowd = "Eight processes send eight times as many batches, each with an eighth of the callers. The fixed cost of a batch, which is its system calls and the start of its script, is spread over fewer checks. " +
		"Tried and kept: calls that wait for up to 1 ms instead of 0.1 ms for a worker that is about to take them, because eight processes lose two cores for longer than that. " +
		"A check of eight processes then costs 5.2 µs instead of 7.9."
	whyThreePolicies = "Redis executes about 31 000 instructions more for each further policy: a third of them are the commands MGET and INCRBY, and a third is Lua's interpreter. The faster one policy is, the larger the ratio. " +
		"Tried and kept: calls are decided before the script makes tables and functions, one turn that judges and charges the first take, judged states in the table of texts, " +
		"limits sent once per batch, one buffer for all keys, a TTL that follows from the state, prepared header values."
	whyHold = "A batch holds 48 takes, and a take of another limit or algorithm than its neighbours takes 10 to 15 µs. The script reads a log whose entries have different costs entry by entry, from the nearer end: at the worst, half of the log. Tried and kept: " +
		"reading in blocks, from the nearer end, one LTRIM after a search, less weight in a batch."
	whyMemory = "A sixth of the time is the clock, a tenth the hash of the key, and a quarter the look-up, most of it cache misses of its chain, block and record. Tried and kept: records of 96 bytes, " +
		"a table that grows by a chain at a time, a path for one take, buckets without interface calls, the state in the record itself, names compared by their hash first, and names that are never copied. " +
		"Not taken: pointers to records, which would need more memory per key."
	whyCores = "Two goroutines with a Memory each are nearly twice as fast as one. With one Memory each waits for cache lines that the other has written, about 100 ns per check " +
		"if their cores share no cache. A host moves the cores of a virtual machine: within a minute, one program had speed-ups from 0.6 to 1.6. Tried and kept: more shards than cores, each with counters of its own and on cache lines of its own, one lock per take. " +
		"Tried and not better: the lock and the counters on one line, the changing fields of a record on one line."
	whyMiddleware = "Memory takes a quarter of it, header fields a fifth, the key a seventh, and the copy of the request a tenth: only WithContext gives a request another context. " +
		"Tried and kept: a verdict that is lent from a pool until a handler asks for it, ready texts of numbers that repeat, keys without fmt."
	whyMemoryPolicies = "Each further policy is a key, a look-up and a state of its own, and its verdict. The fields, the copy of the request and the calls between stages are shared. A quarter of it is cache misses. " +
		"Tried and kept: look-ups before decisions, so that their cache misses overlap, and limits and decisions that are copied once. Tried and not better: all chains read before the first record, eight bytes of a key escaped at once."
	whyDenial = "A denial takes the path of an admitted request, and then writes four more header fields and a body. The limiter computes its figures for the instant, so they are as exact as Redis's. It took 0.69 to 1.6 µs, depending on the machine. " +
		"Tried and kept: prepared bodies, one allocation for three header values, one lookup of the remembered denial, no context for a denied request."
)
