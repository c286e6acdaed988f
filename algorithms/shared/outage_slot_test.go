// Slots of a Cluster that move from one master to another.

package shared

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// A movingSlot is the slot of a key, and the masters between which it moves.
type movingSlot struct {
	t        *testing.T
	slot     int64
	from, to *redistest.Server
	others   []*redistest.Server
}

// newMovingSlot returns the slot of a key that the first master serves.
func newMovingSlot(t *testing.T, nodes []*redistest.Server, key string) *movingSlot {
	return &movingSlot{t, int64(slotOf(key)), nodes[0], nodes[1], nodes[2:]}
}

// begin marks the slot as moving. A master that holds only some keys of a call answers TRYAGAIN.
func (m *movingSlot) begin() {
	m.t.Helper()
	do(m.t, m.to.Client(), "cluster", "setslot", m.slot, "importing", m.id(m.from))
	do(m.t, m.from.Client(), "cluster", "setslot", m.slot, "migrating", m.id(m.to))
}

// finish moves the keys one by one, and then the slot. The masters have changed places afterwards.
func (m *movingSlot) finish() {
	m.t.Helper()
	host, port, err := net.SplitHostPort(m.to.Addr())
	if err != nil {
		m.t.Fatal(err)
	}
	for {
		keys := m.from.Client().ClusterGetKeysInSlot(m.t.Context(), int(m.slot), 1).Val()
		if len(keys) == 0 {
			break
		}
		do(m.t, m.from.Client(), "migrate", host, port, keys[0], 0, 60_000)
		time.Sleep(5 * time.Millisecond) // calls meet the slot half moved
	}
	for _, s := range append([]*redistest.Server{m.to, m.from}, m.others...) {
		do(m.t, s.Client(), "cluster", "setslot", m.slot, "node", m.id(m.to))
	}
	m.from, m.to = m.to, m.from
}

func (m *movingSlot) id(s *redistest.Server) string {
	return s.Client().ClusterMyID(m.t.Context()).Val()
}

// keysOfFirstMaster returns keys that the first master of a Cluster serves, each in a slot of its own.
func keysOfFirstMaster(c *redistest.Cluster, n int) (keys []string) {
	slots := make(map[uint16]bool)
	for i := 0; len(keys) < n; i++ {
		key := fmt.Sprint("usr=", i)
		if slot := slotOf(key); !slots[slot] && c.Master(c.Slot(key)) == c.Nodes()[0] {
			slots[slot] = true
			keys = append(keys, key)
		}
	}
	return keys
}

// twoPolicies returns the checks of a request that two policies limit, in one slot.
func twoPolicies(key string, limit algorithms.Limit, cost int64) []algorithms.Check {
	return []algorithms.Check{{Policy: "a", Key: key, Limit: limit, Cost: cost}, {Policy: "b", Key: key, Limit: limit, Cost: cost}}
}

// A slot that moves holds up only itself: however many of its calls meet it half moved,
// the circuit of its master stays closed, and Redis decides the calls of other slots.
func TestMovingSlotOpensNoCircuit(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), MinRetryBackoff: -1, MaxRetryBackoff: -1})
	t.Cleanup(func() { _ = client.Close() })
	keys := keysOfFirstMaster(cluster, 2)
	moving, other := keys[0], keys[1]
	l := must(t, client, &Options{Logger: new(logRecords).logger()})
	decides := func(checks []algorithms.Check) bool {
		return l.Allow(t.Context(), checks) == nil && checks[0].Decision.Source == algorithms.Shared
	}
	redistest.Until(t, "Redis decides", func() bool {
		return decides(twoPolicies(other, ample, 1)) && decides(twoPolicies(moving, ample, 1)[:1]) // policy b has no key yet
	})
	slot := newMovingSlot(t, cluster.Nodes(), moving)
	slot.begin()
	before := l.Stats().Fallback.Trips
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for end := time.Now().Add(10 * defaultDeadline); time.Now().Before(end); {
				checks := twoPolicies(moving, ample, 1)
				if err := l.Allow(context.Background(), checks); err != nil || checks[0].Decision.Source != algorithms.Local {
					t.Errorf("got %+v, %v, want a local decision while the slot moves", checks, err)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	callers.Wait()
	if got := l.Stats().Fallback; got.Trips != before || got.Open != 0 {
		t.Errorf("the circuit has opened %d times", got.Trips-before)
	}
	redistest.Until(t, "Redis decides the calls of another slot", func() bool { return decides(twoPolicies(other, ample, 1)) })
	slot.finish()
	redistest.Until(t, "Redis decides the calls of the moved slot", func() bool { return decides(twoPolicies(moving, ample, 1)) })
}

// A slot moves again and again, key by key, while callers take from its keys: what was
// admitted is what Redis counts afterwards, to the unit.
func TestReshardKeepsTheSum(t *testing.T) { testReshard(t, 3) }

// The same with more moves.
func TestLongReshardKeepsTheSum(t *testing.T) {
	longtest.Skip(t)
	testReshard(t, 40)
}

func testReshard(t *testing.T, moves int) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	t.Cleanup(func() { _ = client.Close() })
	l := must(t, client, &Options{Logger: new(logRecords).logger()})
	key := keysOfFirstMaster(cluster, 1)[0]
	var callers sync.WaitGroup
	var over atomic.Bool
	var admitted atomic.Int64
	for range 16 {
		callers.Go(func() {
			for !over.Load() {
				checks := twoPolicies(key, ample, 1)
				if err := l.Allow(context.Background(), checks); err != nil || !algorithms.Allowed(checks) {
					t.Errorf("got %+v, %v, want it to be allowed", checks, err)
					return
				}
				admitted.Add(1)
			}
		})
	}
	slot := newMovingSlot(t, cluster.Nodes(), key)
	for range moves {
		before := admitted.Load()
		redistest.Until(t, "calls are admitted", func() bool { return admitted.Load() > before+100 })
		slot.begin()
		slot.finish()
	}
	over.Store(true)
	callers.Wait()
	redistest.Until(t, "nothing is owed, and no circuit is open", func() bool {
		got := l.Stats().Fallback
		return got.Owed == 0 && got.Open == 0 && l.redis.underWay() == 0
	})
	// The units of a call that timed out are charged in both policies, or in neither.
	direct := newRedis(t, client, nil)
	got := l.Stats().Fallback
	for i, policy := range []string{"a", "b"} {
		checks := twoPolicies(key, ample, 0)[i : i+1]
		if err := direct.Allow(t.Context(), checks); err != nil {
			t.Fatal(err)
		}
		charged, sum := ample.Burst()-checks[0].Decision.Remaining, admitted.Load()
		if charged > sum || 2*(sum-charged) > got.Unknown+int64(got.Lost) {
			t.Errorf("policy %s: Redis counts %d of %d admitted units, %d are unknown and %d lost in both policies; want the same sum",
				policy, charged, sum, got.Unknown, got.Lost)
		}
	}
}
