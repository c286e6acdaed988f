// The lanes of a client: one for each master of a Cluster, otherwise one.
//
// The client of a Cluster knows which master has a key, because it asks a node now and
// then, and learns from redirections. Before the first answer it knows no master, so
// all calls share the lane of the address "", as those of other clients always do. If
// the circuit of a lane opens and its master has no slots any more, no key can probe it,
// and the lane is removed.

package shared

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms/shared/internal/batch"
	"github.com/penstock-go/penstock/algorithms/shared/internal/circuit"
)

// A clusterClient is a [redis.ClusterClient], also embedded in another type.
type clusterClient interface {
	Options() *redis.ClusterOptions
	MasterForKey(ctx context.Context, key string) (*redis.Client, error)
	ReloadState(ctx context.Context)
}

// lane returns the lane of the master that has a stored key.
func (r *redisLayer) lane(key string) *batch.Lane {
	addr := ""
	if r.cluster != nil && r.routed.Load() { // otherwise the client would wait for an answer
		if master, err := r.cluster.MasterForKey(context.Background(), key); err == nil {
			addr = master.Options().Addr
		}
	}
	l, ok := r.lanes.Load(addr)
	if !ok {
		l, _ = r.lanes.LoadOrStore(addr, r.transport.Lane(r.circuits.Add()))
	}
	return l.(*batch.Lane)
}

// keyTries is how many keys probeKey tries. A master with a hundredth of the
// slots has none of them with a probability of 2 in a billion.
const keyTries = 2_000

// probeKey implements [primary]. It removes the lane of a circuit whose master has
// no slots.
func (r *redisLayer) probeKey(c *circuit.Circuit, text string) (key string, ok bool) {
	if r.cluster == nil {
		return text, true
	}
	for n := range keyTries {
		key = fmt.Sprintf("%s-%d", text, n)
		if r.lane("{"+key+"}").Circuit == c {
			return key, true
		}
	}
	for addr, l := range r.lanes.Range {
		if l.(*batch.Lane).Circuit == c {
			r.lanes.Delete(addr)
		}
	}
	return "", false
}
