// Errors of a node for a client that is not a Cluster's.

package shared

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/internal/redistest"
)

func TestTroublesOfAClusterNode(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	nodes := cluster.Nodes()
	node := nodes[0].Client()

	t.Run("MOVED", func(t *testing.T) {
		wantTrouble(t, ask(t, node, keyOf(t, cluster, 1)), "MOVED", "configuration success")
	})
	t.Run("CROSSSLOT", func(t *testing.T) {
		wantTrouble(t, ask(t, node, keyOf(t, cluster, 0), keyOf(t, cluster, 1)), "CROSSSLOT", "configuration success")
	})
	t.Run("ASK", func(t *testing.T) {
		key := keyOf(t, cluster, 0)
		migrate(t, nodes, key)
		wantTrouble(t, ask(t, node, key), "ASK", "configuration success")
	})
	t.Run("TRYAGAIN", func(t *testing.T) {
		key := keyOf(t, cluster, 0)
		if err := ask(t, node, key+"|a"); err != nil {
			t.Fatal(err)
		}
		migrate(t, nodes, key)
		err := ask(t, node, key+"|a", key+"|b")
		if redis.HasErrorPrefix(err, "ASK") {
			t.Skip("this server says ASK even if it has some of the keys, as Redis 6.2 does")
		}
		wantTrouble(t, err, "TRYAGAIN", "failover success retry")
	})
	t.Run("key of another slot in the script", func(t *testing.T) {
		body := fmt.Sprintf("redis.call('GET', '%s')", keyOf(t, cluster, 1))
		c := redistest.Script(node, redistest.Send("eval", body, 1, keyOf(t, cluster, 0)))
		wantTrouble(t, ask(t, c, "usr=1"), "ttempted to access", "internal success executed")
	})
	t.Run("not ready for another client", func(t *testing.T) {
		for _, n := range nodes { // MOVED or CROSSSLOT, whichever a node finds first
			wantMisconfigured(t, newRedis(t, n.Client(), nil), "cluster", "", "redis.NewClusterClient")
		}
	})
	t.Run("ready", func(t *testing.T) {
		for _, c := range []Client{cluster.Client(), embedding{cluster.Client()}} {
			if err := newRedis(t, c, nil).redis.ready(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// keyOf returns a key that a node holds, of this test only.
func keyOf(t *testing.T, cluster *redistest.Cluster, node int) string {
	t.Helper()
	for i := range 1000 {
		key := fmt.Sprintf("usr=%s/%d", strings.ReplaceAll(t.Name(), " ", "-"), i)
		if cluster.Master(cluster.Slot(key)) == cluster.Nodes()[node] {
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
