// Package lease answers the takes of hot keys in this process, without a round trip to Redis.
//
// A [Limiter] wraps another limiter, such as one of package shared. It charges a block of units there in advance,
// and spends them here:
//
//	limiter := ratelimit.Must(shared.New(rdb, nil))
//	defer limiter.Close()
//	leases := ratelimit.Must(lease.New(limiter, nil))
//	defer leases.Close() // before the limiter's
//
// Use it where one key has thousands of takes per second, such as a limit that all clients share. Other keys gain
// nothing from it.
//
// # What is leased
//
// A key becomes hot when this process admits [Options.HotAt] takes of it per second. Its limit must be a TokenBucket,
// FixedWindow, SlidingWindowCounter, PerDay or PerMonth. The wrapped limiter must decide as [algorithms.Shared]: a
// Memory is never leased, and nothing new is leased while Redis is down. A block answers a take of a hot key, unless
//
//   - the take is Exact, or its cost is 0;
//   - its call has a trial, two checks of one key, or more than eight checks;
//   - the key is longer than 1 152 bytes.
//
// The wrapped limiter answers everything else. A decision from a block is Shared. Its Remaining counts the units on
// lease. Its receipt is valid for the wrapped limiter.
//
// # Bounds
//
// A block is charged before it is spent, so leases admit no more in total. In any interval, a token bucket may admit
// as many units more as were on lease when the interval began: in each process, at most [Options.Share] of the burst.
// Stats().Lease.Units counts them. A block of a window is spent in that window only.
//
// Unspent units go back when [Options.Hold] has passed. Until then, other processes are denied them. The last units
// of a limit are not leased, so every process finds them. If a process dies, its units on lease stay charged until
// they refill. A Reset ends the lease in this process at once, and in other processes within Hold.
//
// Some units are lost, and Stats().Lease.Lost counts them:
//
//   - units of a block whose take failed, because its charge may have no reply;
//   - units that could not go back;
//   - units that are left when their window ends, or when their key is reset.
//
// # Fairness
//
// Lease in all processes of a policy, or in none. A process without leases waits for each unit, so a process with
// leases takes more. In a closed loop it took this many times as many units:
//
//	Units of the limit    All units    The last tenth
//	10 000                8 times      1.5 times
//	1 000 000             64 times     8 times
//
// # Life
//
// A Limiter is safe for concurrent use. It has goroutines only while a key is hot: one for each block under way, and
// one that gives units back. Callers never wait for them: if a key has no block, the wrapped limiter answers.
//
// Errors of Allow are the wrapped limiter's. Close a Limiter before the limiter that it wraps, because Close gives
// back unspent units there. The wrapped limiter must keep real time: under a clock that a test sets, a block can
// outlast its window.
package lease
