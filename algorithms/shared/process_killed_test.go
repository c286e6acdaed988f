// Processes that are killed between a take in one slot of a Cluster and its
// return.

package shared

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// scarceOfTwo are checks in two slots. The second denies soon. From then on
// each call takes of the first, and gives back.
func scarceOfTwo() []algorithms.Check {
	return []algorithms.Check{
		{Policy: "plenty", Key: "usr=1", Limit: algorithms.SlidingWindowCounter(100_000, 24*time.Hour), Cost: 1},
		{Policy: "scarce", Key: "usr=2", Limit: algorithms.SlidingWindowLog(300, 24*time.Hour), Cost: 1},
	}
}

// TestKilledProcess does the job of TestKilledBetweenSlots, whose addresses are
// those of a Cluster: one call after the other. It reports of each call whether
// it was admitted.
func TestKilledProcess(t *testing.T) {
	redistest.RunJob(t, func(p *redistest.Parent, addrs []string) {
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
		defer client.Close()
		r := newRedis(t, client, nil)
		for {
			checks := scarceOfTwo()
			if err := r.Allow(t.Context(), checks); err != nil {
				t.Fatal(err)
			}
			p.Say(algorithms.Allowed(checks))
		}
	})
}

// TestKilledBetweenSlots: processes that are killed anywhere, also between a
// take and its return, admit no request over a limit, and leave at most their
// current calls charged.
func TestKilledBetweenSlots(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	const kills = 16
	cluster := redistest.StartCluster(t)
	if cluster.Slot("{usr=1}")*3/16384 == cluster.Slot("{usr=2}")*3/16384 {
		t.Fatal("the keys are of one master")
	}
	var admitted, answers atomic.Int64
	t.Run("processes", func(t *testing.T) {
		for range 4 {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for range kills / 4 {
					runUntilKilled(t, cluster, &admitted, &answers)
				}
			})
		}
	})
	r := newRedis(t, cluster.Client(), nil)
	var used [2]int64
	for i, c := range scarceOfTwo() {
		c.Cost = 0
		checks := []algorithms.Check{c}
		if err := r.Allow(t.Context(), checks); err != nil {
			t.Fatal(err)
		}
		used[i] = c.Limit.Requests() - checks[0].Decision.Remaining
	}
	t.Logf("%d answers, %d admitted; %d and %d are charged", answers.Load(), admitted.Load(), used[0], used[1])
	if n := admitted.Load(); n > used[1] || used[1] > n+kills || used[1] > 300 {
		t.Errorf("got %d admitted and %d charged of 300, want as many except for killed calls", n, used[1])
	}
	if used[0] < used[1] || used[0] > used[1]+kills {
		t.Errorf("got %d and %d charged, want as many except for killed calls", used[0], used[1])
	}
	if answers.Load() < admitted.Load()+kills {
		t.Error("hardly a call was denied, and so nothing was given back")
	}
}

// runUntilKilled runs a process, and kills it some calls after its first.
func runUntilKilled(t *testing.T, cluster *redistest.Cluster, admitted, answers *atomic.Int64) {
	child := redistest.Rerun(t, "TestKilledProcess", cluster.Addrs())
	last := rand.IntN(200)
	for n := 0; ; n++ {
		var ok bool
		if child.Next(&ok) != nil {
			break // it is dead, and what it said was read
		}
		if answers.Add(1); ok {
			admitted.Add(1)
		}
		if n == last {
			child.Kill()
		}
	}
	child.Kill()
}
