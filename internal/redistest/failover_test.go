package redistest

import (
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/longtest"
)

func TestClusterPromotesAReplica(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	began := time.Now()
	c := StartClusterWithReplicas(t, "--cluster-require-full-coverage", "no")
	t.Logf("cluster ready after %v", time.Since(began).Round(time.Millisecond))
	if got := c.Nodes()[0].Client().ConfigGet(t.Context(), "cluster-require-full-coverage").Val(); got["cluster-require-full-coverage"] != "no" {
		t.Errorf("got %v, want no full coverage", got)
	}
	slot := c.Slot("k")
	if slot != 7629 {
		t.Errorf("got slot %d, want 7629", slot)
	}
	first := c.Master(slot)
	second := c.Replica(first)
	if first != c.Nodes()[1] || second != c.Nodes()[4] {
		t.Errorf("got %s and %s, want the second master and its replica", first.Addr(), second.Addr())
	}
	wantSet(t, c.Client())

	began = time.Now()
	first.Kill()
	c.WaitPromoted(second)
	t.Logf("promoted after %v", time.Since(began).Round(time.Millisecond))
	if got := c.Master(slot); got != second {
		t.Errorf("got master %s, want the promoted %s", got.Addr(), second.Addr())
	}
	// By itself the client loads the slots once a minute. A refused connection does not make it load them earlier.
	c.Client().ReloadState(t.Context())
	Until(t, "the new master takes writes", func() bool { return c.Client().Set(t.Context(), "k", "v", 0).Err() == nil })

	first.Restart()
	c.WaitReady()
	if c.Replica(second) != first {
		t.Error("the old master is not the replica of the new one")
	}
	// The master calls a replica online a moment after the replica has its data.
	Until(t, "one replica is in step", func() bool { return strings.Count(second.replication(), "state=online") == 1 })

	second.Stop()
	c.WaitPromoted(first)
	second.Continue()
	c.WaitReady()
	if c.Master(slot) != first || c.Replica(first) != second {
		t.Error("the master that was frozen leads again")
	}
}
