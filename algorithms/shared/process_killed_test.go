package shared

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

const killedEnv = "PENSTOCK_TEST_KILLED" // the addresses of a Cluster, for a process of this test binary

// scarceOfTwo are checks in two slots, of which the second denies soon: from then
// on each call takes of the first, and gives back.
func scarceOfTwo() []algorithms.Check {
	return []algorithms.Check{
		{Policy: "plenty", Key: "usr=1", Limit: algorithms.SlidingWindowCounter(100_000, 24*time.Hour), Cost: 1},
		{Policy: "scarce", Key: "usr=2", Limit: algorithms.SlidingWindowLog(300, 24*time.Hour), Cost: 1},
	}
}

// TestKilledProcess is no test, but what the processes of the test below run: one
// call after the other, and a line for each that was admitted.
func TestKilledProcess(t *testing.T) {
	addrs := os.Getenv(killedEnv)
	if addrs == "" {
		t.Skip("a process of another test")
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: strings.Split(addrs, ",")})
	defer client.Close()
	r := algorithms.Must(algorithms.NewRedis(client, &algorithms.RedisOptions{Timeout: time.Minute}))
	for {
		checks := scarceOfTwo()
		if err := r.Allow(context.Background(), checks); err != nil {
			t.Fatal(err)
		}
		if algorithms.Allowed(checks) {
			fmt.Println("admitted")
		} else {
			fmt.Println("denied")
		}
	}
}

// TestKilledBetweenSlots: processes that are killed anywhere, also between a take and its return, let nobody over a
// limit, and leave no more charged than what they were doing.
func TestKilledBetweenSlots(t *testing.T) {
	t.Parallel()
	const kills = 16
	cluster := redistest.StartCluster(t)
	if cluster.Slot("{usr=1}")*3/16384 == cluster.Slot("{usr=2}")*3/16384 {
		t.Fatal("the keys are of one master")
	}
	var admitted, answers atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range kills / 4 {
				runUntilKilled(t, cluster, &admitted, &answers)
			}
		})
	}
	wg.Wait()
	r := algorithms.Must(algorithms.NewRedis(cluster.Client(), &algorithms.RedisOptions{Timeout: time.Minute}))
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
		t.Errorf("got %d admitted and %d charged of 300, want as many but for what was killed", n, used[1])
	}
	if used[0] < used[1] || used[0] > used[1]+kills {
		t.Errorf("got %d and %d charged, want as many but for what was killed", used[0], used[1])
	}
	if answers.Load() < admitted.Load()+kills {
		t.Error("hardly a call was denied, and so nothing was given back")
	}
}

// runUntilKilled runs a process, and kills it some calls after its first.
func runUntilKilled(t *testing.T, cluster *redistest.Cluster, admitted, answers *atomic.Int64) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledProcess$", "-test.timeout=90s")
	cmd.Env = append(os.Environ(), killedEnv+"="+strings.Join(cluster.Addrs(), ","))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Error(err)
		return
	}
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return
	}
	last := rand.IntN(200)
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		switch lines.Text() {
		case "admitted":
			admitted.Add(1)
			answers.Add(1)
		case "denied":
			answers.Add(1)
		}
		if n == last {
			_ = cmd.Process.Kill() // it may have ended
		}
	}
	_ = cmd.Wait() // it was killed
}
