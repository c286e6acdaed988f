// Package batch is the transport: it sends groups of checks to the masters of Redis,
// many groups in one script.
//
//	owner ── Submit ──> lane ── gather ──> batch ── scripts ──> client ──> Redis
//	  ^                                      │
//	  └──────── ended, and later Settled ────┘
//
//	| file      | subject                                                     |
//	|-----------|-------------------------------------------------------------|
//	| group.go  | what one script decides, and the two events of its owner    |
//	| lane.go   | the queue of one master, and who sends from it              |
//	| flight.go | how many batches of a lane are in flight                    |
//	| batch.go  | the life of a batch, from the queue to its end              |
//	| trip.go   | the round trips of a batch                                  |
//	| trips.go  | how long they take                                          |
//	| args.go   | the groups of one slot become the arguments of one script   |
//	| script.go | the command that runs the script                            |
//	| reply.go  | the reply of the script becomes the answers                 |
//	| client.go | the clients through which commands go                       |
//
// A charge is made once or its group ends with an error: a script that Redis may
// have executed is never sent again, whatever retries the client is configured
// for.
//
// The package knows nothing of calls, fallbacks and logs. It has goroutines only
// while there are groups. Each ends with the reply to its commands, or when the
// client gives up.
package batch

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
)

const (
	// clientDeadlines is after how many deadlines the workers' client gives up
	// a read or a write, where the transport may choose. Until then the reply to a
	// group that is overdue may still say whether Redis has executed it.
	clientDeadlines = 10

	// clientSlack is how long after the deadline the callers' own client gives
	// up, so that the batch expires first.
	clientSlack = time.Millisecond

	// controlDeadline is the deadline of plain commands. No caller of a limit
	// waits for them, and the first command may have to dial.
	controlDeadline = time.Second
)

// Options are what all lanes of a limiter share.
type Options struct {
	Client   Client
	InFlight int              // the most batches of a lane; 0: four fifths of the client's pool
	Deadline time.Duration    // of a batch
	Now      func() time.Time // of decisions; nil: the clock of the server
	Watcher  Watcher
}

// A Watcher notices how Redis does. Its methods must not block.
type Watcher interface {
	// Failed: a script has failed with err, or groups that had waited for too long were not sent, once for all
	// groups in it.
	Failed(err error)

	// Answered: Redis has decided groups.
	Answered()

	// Late: a reply came so long after its script was sent, and after the deadline.
	Late(took time.Duration)
}

// A Circuit says whether a master may be asked.
type Circuit interface {
	// Stops reports whether it keeps a call from its master. ours says that the limiter itself makes the call.
	Stops(ours bool) bool

	// Begin begins a round trip. The caller must pass its outcome to end, once. An
	// error means that the round trip must not be made.
	Begin() (end func(outcome error), err error)

	// Excuses reports whether this process is to blame for an expiry, whose timer was due at an instant and has fired
	// now, both in µs.
	Excuses(due, now int64) bool
}

// A Transport sends groups and plain commands through a client.
type Transport struct {
	Options
	Clock   func() time.Time // of this process, by which calendars are sent unless Now is
	workers *sender          // of batches that workers send
	direct  *sender          // of batches that callers send; nil: callers send none

	batches sync.Pool // of *batch
	trips   roundTrips
	counts  struct {
		scripts, batched atomic.Uint64
		loads            atomic.Uint64 // of the script, after Redis restarted, failed over or flushed its scripts
		excused          atomic.Uint64 // batches that expired because this process was late
		sizes            [len(algorithms.Stats{}.Redis.Batches)]atomic.Uint64
	}
}

// New returns a transport. It adds a hook to a redis.Client.
func New(o Options) *Transport {
	t := &Transport{Options: o, Clock: time.Now}
	if t.InFlight == 0 {
		t.InFlight = blindInFlight
		if pool := PoolOf(o.Client); pool > 0 {
			t.InFlight = max(1, pool*4/5)
		}
	}
	t.workers = newSender(o.Client, clientDeadlines*o.Deadline)
	if c, ok := o.Client.(*redis.Client); ok {
		if endsInTime(c.Options()) {
			t.direct = newSender(c, o.Deadline+clientSlack)
		}
		c.AddHook(divert{})
	}
	t.batches.New = newBatch
	return t
}

// Do sends plain commands, all for one slot. It returns the first of their errors that is
// not about a key, and otherwise the first. The commands must do no harm if the client sends them late, or more than once.
// If Do returns an error, the client may still write their replies. A silent Redis
// opens the circuit, and then the limiter sends no plain commands. So few abandoned
// commands gather.
func (t *Transport) Do(ctx context.Context, commands ...redis.Cmder) error {
	ctx, cancel := context.WithTimeout(ctx, max(t.Deadline, controlDeadline))
	defer cancel() // not before the end is read: both would be ready
	done := make(chan error, 1)
	go func() {
		t.workers.trip(ctx, commands)
		var first error
		for _, cmd := range commands {
			if err := trouble.AsTimeout(cmd.Err()); err != nil && (first == nil || trouble.Of(first).Reason == trouble.Key) {
				first = err
			}
		}
		done <- first
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return trouble.ErrTimeout
	}
}

// latest is the last instant at which all arithmetic is exact, in 2252.
const latest = step.MaxExact - 1<<46

// scriptNow returns the instant that scripts receive, in µs; 0 for the server's.
func (t *Transport) scriptNow() (int64, error) {
	if t.Now == nil {
		return 0, nil
	}
	now := t.Now().UnixMicro()
	if now < 1 || now > latest {
		return 0, fmt.Errorf("%w: the clock says %v; it must be after 1970 and before 2253",
			algorithms.ErrInvalid, time.UnixMicro(now).UTC())
	}
	return now, nil
}

// AddStats adds the figures of scripts and their round trips.
func (t *Transport) AddStats(s *algorithms.Stats) {
	s.Redis.Scripts = t.counts.scripts.Load()
	s.Redis.Batched = t.counts.batched.Load()
	s.Redis.ScriptLoads, s.Redis.Excused = t.counts.loads.Load(), t.counts.excused.Load()
	for i := range s.Redis.Batches {
		s.Redis.Batches[i] = t.counts.sizes[i].Load()
	}
	s.Redis.Deadline = t.Deadline
	t.trips.addStats(s)
}
