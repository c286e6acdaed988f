package algorithms_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// What a client that is not one for Redis Cluster sees of a node.
func TestTroublesOfAClusterNode(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	nodes := cluster.Nodes()
	node := nodes[0].Client()

	t.Run("MOVED", func(t *testing.T) {
		wantTrouble(t, ask(t, node, keyOf(t, cluster, 1)), "MOVED", "configuration success")
	})
	t.Run("CROSSSLOT", func(t *testing.T) {
		var seen events
		err := askWith(t.Context(), t, node, &algorithms.RedisOptions{Observe: seen.add}, keyOf(t, cluster, 0), keyOf(t, cluster, 1))
		wantTrouble(t, err, "MOVED", "configuration success")
		first := slices.IndexFunc(seen.all(), func(e algorithms.Event) bool { return e.Kind == algorithms.EventError })
		if first < 0 {
			t.Fatal("no event says that slots were crossed")
		}
		wantTrouble(t, seen.all()[first].Err, "CROSSSLOT", "configuration success")
	})
	t.Run("ASK", func(t *testing.T) {
		key := keyOf(t, cluster, 0)
		migrate(t, nodes, key)
		wantTrouble(t, ask(t, node, key), "ASK", "configuration success")
	})
	t.Run("TRYAGAIN", func(t *testing.T) {
		key := "usr=" + keyOf(t, cluster, 0)
		if err := ask(t, node, key+"|a"); err != nil {
			t.Fatal(err)
		}
		migrate(t, nodes, key)
		wantTrouble(t, ask(t, node, key+"|a", key+"|b"), "TRYAGAIN", "failover failure retry")
	})
	t.Run("key of another slot in the script", func(t *testing.T) {
		body := fmt.Sprintf("redis.call('GET', '%s')", keyOf(t, cluster, 1))
		c := instead{node, []any{"eval", body, 1, keyOf(t, cluster, 0)}}
		wantTrouble(t, ask(t, c, "usr=1"), "Script attempted to access", "internal success executed")
	})
	t.Run("not ready for a client of another type", func(t *testing.T) {
		for _, n := range nodes {
			wantNotReady(t, newRedis(t, n.Client(), nil), "MOVED", "redis.NewClusterClient")
		}
	})
	t.Run("ready", func(t *testing.T) {
		for _, c := range []algorithms.Client{cluster.Client(), processOnly{cluster.Client()}} {
			if err := newRedis(t, c, nil).Ready(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

func wantTrouble(t *testing.T, err error, says, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Fatalf("got %v, want an error that says %q", err, says)
	}
	if got := algorithms.TroubleForTest(err); got != want {
		t.Errorf("%v: got %q, want %q", err, got, want)
	}
}

// keyOf returns a key that a node holds; every call another.
func keyOf(t *testing.T, cluster *redistest.Cluster, node int) string {
	t.Helper()
	for i := range 1000 {
		key := fmt.Sprintf("usr=%s/%d", strings.ReplaceAll(t.Name(), " ", "-"), i)
		slot := cluster.Nodes()[node].Client().ClusterKeySlot(t.Context(), key).Val()
		if int(slot)*3/16384 == node {
			return key
		}
	}
	t.Fatal("no key found")
	return ""
}

// migrate begins to move the slot of a key from the first node to the second.
func migrate(t *testing.T, nodes []*redistest.Server, key string) {
	t.Helper()
	from, to := nodes[0].Client(), nodes[1].Client()
	slot := from.ClusterKeySlot(t.Context(), key).Val()
	id := to.ClusterMyID(t.Context()).Val()
	do(t, from, "cluster", "setslot", slot, "migrating", id)
	t.Cleanup(func() { _ = from.Do(t.Context(), "cluster", "setslot", slot, "stable").Err() })
}

// events collects what a limiter observes.
type events struct {
	mu   sync.Mutex
	list []algorithms.Event
}

func (e *events) add(event algorithms.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, event)
}

func (e *events) all() []algorithms.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.list)
}
