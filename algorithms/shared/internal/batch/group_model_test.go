// The events of groups, in each order, against what they promise. No Redis is needed: the
// client of the model is a network, and a server that answers when the model says so.

package batch

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
)

const modelDeadline = 40 * time.Millisecond

// A groupModel is a lane whose client the model moves.
type groupModel struct {
	lane *Lane

	mu      sync.Mutex // guards the fields below, also those of the callers
	callers []*modelCaller
	trips   []*modelTrip // that the client has not ended
}

// A modelCaller submits one group.
type modelCaller struct {
	model     *groupModel
	group     *Group
	began     time.Time
	cancel    context.CancelFunc
	left      bool // before its group was in flight
	returned  bool
	overdue   bool
	err       error
	took      time.Duration
	executed  int
	settled   int
	settledBy error
}

// A modelTrip is a command that the client has.
type modelTrip struct {
	name   *scriptName
	groups []*Group
	sent   bool // the client has read the name of the script
	ends   chan error
}

// Process implements [Client].
func (m *groupModel) Process(_ context.Context, cmd redis.Cmder) error {
	return m.process(cmd, clientDeadlines*modelDeadline)
}

// A modelDirect is the client of callers, which gives up sooner.
type modelDirect struct{ *groupModel }

// Process implements [Client].
func (m modelDirect) Process(_ context.Context, cmd redis.Cmder) error {
	return m.process(cmd, modelDeadline+clientSlack)
}

// process lets the model end a command. After a time the client gives it up.
func (m *groupModel) process(cmd redis.Cmder, within time.Duration) error {
	name := cmd.Args()[1].(*scriptName)
	t := &modelTrip{name: name, groups: slices.Clone(name.batch.groups), ends: make(chan error)}
	m.mu.Lock()
	m.trips = append(m.trips, t)
	m.mu.Unlock()
	var err error
	select {
	case err = <-t.ends:
	case <-time.After(within):
		m.mu.Lock()
		m.trips = slices.DeleteFunc(m.trips, func(other *modelTrip) bool { return other == t })
		m.mu.Unlock()
		err = os.ErrDeadlineExceeded
	}
	if err != nil {
		cmd.SetErr(err)
		return err
	}
	reply := double(1_000_000)
	for range t.groups {
		reply += double(1<<flags|flagAllowed) + double(1_000_000)
	}
	cmd.(interface{ SetVal(any) }).SetVal(reply)
	return nil
}

func double(v float64) string {
	return string(binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)))
}

// moves returns the events that may come next.
func (m *groupModel) moves(callers int) (all []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.callers) < callers {
		all = append(all, "submit")
	}
	for i, c := range m.callers {
		if !c.returned && c.cancel != nil {
			all = append(all, fmt.Sprint("cancel ", i))
		}
	}
	if len(m.trips) > 0 {
		if !m.trips[0].sent {
			all = append(all, "send")
		}
		all = append(all, "answer", "fail")
	}
	return append(all, "wait")
}

// move makes an event happen.
func (m *groupModel) move(t *testing.T, event string) {
	var i int
	switch word, rest, _ := strings.Cut(event, " "); word {
	case "submit":
		m.submit(t)
	case "cancel":
		_, _ = fmt.Sscan(rest, &i)
		c := m.callers[i]
		m.lane.mu.Lock()
		left := slices.Contains(m.lane.queue, c.group)
		m.lane.mu.Unlock()
		m.mu.Lock()
		c.left = left
		m.mu.Unlock()
		c.cancel()
		c.cancel = nil
	case "send":
		m.send(m.first())
	case "answer":
		m.end(nil)
	case "fail":
		m.end(errAnswer)
	case "wait":
		time.Sleep(modelDeadline * 3 / 5)
	}
	synctest.Wait()
}

func (m *groupModel) submit(t *testing.T) {
	check := algorithms.Check{Policy: "p", Key: fmt.Sprint("usr=", len(m.callers)), Limit: algorithms.TokenBucket(10, time.Hour), Cost: 1}
	c := &modelCaller{model: m, group: groupOf(t, "model", check), began: time.Now()}
	m.mu.Lock()
	m.callers = append(m.callers, c)
	m.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	go func() {
		err := m.lane.Submit(ctx, c.group)
		m.mu.Lock()
		c.returned, c.overdue, c.err, c.took = true, err == trouble.ErrTimeout, err, time.Since(c.began)
		m.mu.Unlock()
		cancel()
		if c.overdue {
			c.settle()
		}
	}()
}

// settle waits until the caller's overdue group has settled.
func (c *modelCaller) settle() {
	err := <-c.group.Settled()
	c.model.mu.Lock()
	defer c.model.mu.Unlock()
	c.settled, c.settledBy = c.settled+1, err
}

// first returns the oldest trip that the client has not ended; nil if there is none.
func (m *groupModel) first() *modelTrip {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.trips) == 0 {
		return nil
	}
	return m.trips[0]
}

// send lets the client write a command, as far as the batch allows it.
func (m *groupModel) send(trip *modelTrip) {
	name, _ := trip.name.MarshalBinary()
	m.mu.Lock()
	defer m.mu.Unlock()
	trip.sent = true
	if len(name) == 0 {
		return // Redis knows no such script
	}
	for _, c := range m.callers {
		if slices.Contains(trip.groups, c.group) {
			c.executed++
		}
	}
}

// end ends the first trip. Redis has answered only what was sent.
func (m *groupModel) end(err error) {
	trip := m.first()
	if !trip.sent {
		m.send(trip)
	}
	m.mu.Lock()
	m.trips = m.trips[1:]
	m.mu.Unlock()
	trip.ends <- err
}

// check compares the callers with what the package promises.
func (m *groupModel) check(over bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, c := range m.callers {
		if err := c.check(over); err != nil {
			return fmt.Errorf("caller %d, %+v: %w", i, c, err)
		}
	}
	l := m.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	if over && (l.inFlight != 0 || l.stuck != 0 || l.flying != 0 || l.awaiting != 0 || len(l.queue) != 0) {
		return fmt.Errorf("afterwards %d batches are in flight, %d stuck, with %d groups; %d workers await, and %d groups wait",
			l.inFlight, l.stuck, l.flying, l.awaiting, len(l.queue))
	}
	return nil
}

func (c *modelCaller) check(over bool) error {
	switch {
	case !c.returned && (over || time.Since(c.began) > 2*modelDeadline):
		return errors.New("the group has not ended")
	case c.executed > 1:
		return errors.New("Redis has executed it twice")
	case !c.returned:
		if c.left {
			return errors.New("its caller has left the queue, and has not returned")
		}
		return nil
	case c.took > 2*modelDeadline:
		return errors.New("the caller has waited for more than two deadlines")
	case c.overdue != errors.Is(c.err, trouble.ErrTimeout):
		return errors.New("overdue groups, and no others, end with a timeout")
	case c.err == nil && (c.executed != 1 || !c.group.Items[0].Answer.Allowed):
		return errors.New("it has an answer that Redis did not give")
	case !trouble.Of(c.err).Executed && c.err != nil && !errors.Is(c.err, errAnswer) && c.executed > 0:
		return errors.New("its error says that Redis has not executed it")
	case c.left && c.executed > 0:
		return errors.New("Redis has executed a group that had left the queue")
	case c.settled > 0 && !c.overdue, c.returned && len(c.group.done) > 0, over && c.overdue && c.settled == 0:
		return errors.New("an overdue group settles once, and no other group settles")
	case c.settled == 1 && c.settledBy == nil && c.executed != 1:
		return errors.New("it has settled with an answer that Redis did not give")
	}
	return nil
}

// finish ends all that goes on.
func (m *groupModel) finish(t *testing.T) {
	for range 3 {
		for m.first() != nil {
			m.move(t, "answer")
		}
		time.Sleep(modelDeadline)
		synctest.Wait()
	}
}

// play plays events from the beginning, and then ends all that goes on. It returns the events that
// could have come next.
func play(t *testing.T, events []string, callers int, direct bool) (next []string) {
	synctest.Test(t, func(t *testing.T) {
		m := new(groupModel)
		m.lane = newLane(m, Options{Deadline: modelDeadline, InFlight: 1})
		if direct {
			m.lane.transport.direct = newSender(modelDirect{m}, 0)
		}
		var problem error
		for i, event := range events {
			m.move(t, event)
			if problem = m.check(false); problem != nil {
				events = events[:i+1]
				break
			}
		}
		next = m.moves(callers)
		m.finish(t)
		if problem == nil {
			problem = m.check(true)
		}
		if problem != nil {
			t.Errorf("direct: %t, after %q: %v", direct, events, problem)
		}
	})
	return next
}

// TestGroupModel: whatever comes in whatever order, each group ends once and in time, Redis executes it at most
// once, its error says no less than that, and only an overdue group settles, once.
func TestGroupModel(t *testing.T) {
	length := 7 // events
	if raceEnabled {
		length = 5 // the race detector slows them down
	}
	for _, direct := range []bool{false, true} {
		played := 0
		for all := [][]string{nil}; len(all) > 0 && !t.Failed(); {
			events := all[len(all)-1]
			all = all[:len(all)-1]
			next := play(t, events, 3, direct)
			if played++; len(events) == length {
				continue
			}
			for _, event := range next {
				all = append(all, append(slices.Clone(events), event))
			}
		}
		t.Logf("direct: %t: played %d sequences of events", direct, played)
	}
}
