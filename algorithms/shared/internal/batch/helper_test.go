// What the tests of this package share: lanes without circuits, and groups of checks.

package batch

import (
	"context"
	"encoding"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
)

var errAnswer = errors.New("WRONGTYPE of this client")

// A master is a circuit that never opens, and a watcher.
type master struct{ excuses bool }

func (m *master) Stops(bool) bool                     { return false }
func (m *master) Begin() (end func(error), err error) { return func(error) {}, nil }
func (m *master) Excuses(due, now int64) bool         { return m.excuses }
func (m *master) Failed(error)                        {}
func (m *master) Answered()                           {}
func (m *master) Late(time.Duration)                  {}

// newLane returns a lane. Unless o says otherwise, its deadline is a minute: a slow
// machine is no outage.
func newLane(client Client, o Options) *Lane {
	m := new(master)
	if o.Deadline == 0 {
		o.Deadline = time.Minute
	}
	o.Client, o.Watcher = client, m
	return New(o).Lane(m)
}

// scripts returns how many scripts a lane has sent.
func (l *Lane) scripts() uint64 { return l.transport.counts.scripts.Load() }

// queued returns how many groups of a lane wait.
func (l *Lane) queued() int {
	queued, _, _ := l.Load()
	return queued
}

// underWay returns how many batches of a lane the client has.
func (l *Lane) underWay() int {
	_, underWay, _ := l.Load()
	return underWay
}

// groupOf returns the group of a call, as package shared makes it.
func groupOf(tb testing.TB, prefix string, checks ...algorithms.Check) *Group {
	tb.Helper()
	g, items, call := new(Group), make([]Item, len(checks)), step.Call{}
	for i := range checks {
		it := &items[i]
		if err := checks[i].Item(&it.Item); err != nil {
			tb.Fatal(err)
		}
		if err := call.Add(&it.Item); err != nil {
			tb.Fatal(err)
		}
		it.Stored = prefix + ":{" + it.Key.Text + "}:" + it.Key.Policy + ":" + it.Key.Scope.Tag
		if it.Before != nil {
			it.Place = uint16(it.Before.Index + 1)
		}
		g.Items = append(g.Items, it)
		g.Closed = g.Closed || checks[i].Fail == algorithms.FailClosed
		g.Weight += it.Limit.Row.Weight(&it.Limit, it.Op, it.Cost)
	}
	return g
}

// takeOne takes a unit, and returns how long it took.
func takeOne(ctx context.Context, l *Lane) (took time.Duration, err error) {
	var it Item
	check := algorithms.Check{Policy: "default", Key: "usr=1", Limit: algorithms.TokenBucket(1, time.Hour), Cost: 1}
	if err := check.Item(&it.Item); err != nil {
		return 0, err
	}
	var call step.Call
	if err := call.Add(&it.Item); err != nil {
		return 0, err
	}
	it.Stored = "penstock:{usr=1}:default:tb"
	start := time.Now()
	err = l.Submit(ctx, &Group{Items: []*Item{&it}, Weight: 1})
	return time.Since(start), err
}

// marshal reads a command as go-redis does to write it.
func marshal(cmd redis.Cmder) {
	for _, arg := range cmd.Args() {
		if m, ok := arg.(encoding.BinaryMarshaler); ok {
			_, _ = m.MarshalBinary()
		}
	}
}
