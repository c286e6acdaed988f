// What New accepts.

package shared

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
)

// New reports every misconfiguration at once, each on a line of its own.
func TestNewNamesEveryMistake(t *testing.T) {
	t.Parallel()
	_, err := New(nil, &Options{
		Prefix: "a{b", Deadline: -1, InFlight: -1, Instances: 100_001,
		MaxKeys: -3, Views: -2,
	})
	if err == nil {
		t.Fatal("got no error")
	}
	lines := strings.Split(err.Error(), "\n")
	for i, want := range []string{
		"shared: the Redis client is nil", `shared: Prefix is "a{b"`, "shared: Deadline is -1ns", "shared: InFlight is -1",
		"shared: Instances is 100001", "shared: MaxKeys is -3", "shared: Views is -2",
	} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d of\n%v\nwant %q", i, err, want)
		}
	}
	if len(lines) != 7 {
		t.Errorf("got %d lines, want 7:\n%v", len(lines), err)
	}
}

// The client must have a connection for each batch in flight, in a Cluster for each
// batch of one node.
func TestNewComparesInFlightWithThePool(t *testing.T) {
	t.Parallel()
	one := clientOf(t, "127.0.0.1:1", func(o *redis.Options) { o.PoolSize = 2 })
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, PoolSize: 2})
	defer cluster.Close()
	for name, client := range map[string]Client{"client": one, "Cluster": cluster, "embedded": struct{ *redis.Client }{one}} {
		for inFlight, want := range map[int]bool{2: true, 3: false} {
			l, err := New(client, &Options{InFlight: inFlight, Logger: slog.New(slog.DiscardHandler)})
			if err == nil {
				_ = l.Close()
			}
			if (err == nil) != want || err != nil && !strings.Contains(err.Error(), "InFlight is 3, and the client's PoolSize is only 2") {
				t.Errorf("%s: InFlight %d with a pool of 2: got %v", name, inFlight, err)
			}
		}
	}
	must(t, struct{ Client }{one}, &Options{InFlight: 3, Logger: slog.New(slog.DiscardHandler)}) // it shows no pool
}

// A client must be one that sends commands, and that keeps keys where they are.
func TestNewWantsAClient(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer rdb.Close()
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": "127.0.0.1:1"}})
	defer ring.Close()
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer cluster.Close()
	auto, err := cluster.AutoPipeline()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		client Client
		want   string
	}{
		"an AutoPipeline":    {auto, "pass the client itself"},
		"a nil client":       {nil, "is nil"},
		"a nil pointer":      {(*redis.Client)(nil), "is nil"},
		"a pipeline":         {rdb.Pipeline(), "pass the client itself"},
		"a Ring":             {ring, "a Ring forgets limits"},
		"an embedded Ring":   {struct{ *redis.Ring }{ring}, "a Ring forgets limits"},
		"a client":           {rdb, ""},
		"an embedded client": {struct{ *redis.Client }{rdb}, ""},
	} {
		l, err := New(tt.client, &Options{Logger: slog.New(slog.DiscardHandler)})
		if err == nil {
			_ = l.Close()
		}
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, tt.want)
		}
	}
}

// Stats say from the start that they are shared, and have every reason.
func TestNewLimitersHaveStats(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer rdb.Close()
	l := must(t, rdb, &Options{Instances: 3, Logger: slog.New(slog.DiscardHandler)})
	s := l.Stats()
	if !s.Shared || s.Fallback.Instances != 3 || len(s.Redis.Errors) != len(trouble.Reasons) {
		t.Errorf("got %+v, want those of one of three instances, with all trouble.Reasons", s)
	}
	if s := algorithms.NewMemory(nil).Stats(); s.Shared || s.Redis.Errors != nil {
		t.Errorf("got %+v of a Memory, want only its part", s)
	}
}
