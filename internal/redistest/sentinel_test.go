package redistest

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/internal/longtest"
)

func TestSentinelPromotesTheReplica(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	began := time.Now()
	s := StartSentinel(t)
	t.Logf("sentinels ready after %v", time.Since(began).Round(time.Millisecond))
	client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: s.MasterName(), SentinelAddrs: s.Addrs()})
	defer client.Close()
	first, second := s.Primary(), s.Replica()
	if first != s.servers[0] || second != s.servers[1] {
		t.Fatalf("got primary %s and replica %s, want the first server and the second", first.Addr(), second.Addr())
	}
	wantSet(t, client)

	began = time.Now()
	first.Kill()
	s.WaitPromoted(second)
	t.Logf("promoted after %v", time.Since(began).Round(time.Millisecond))
	if s.Primary() != second || s.Replica() != first {
		t.Error("the sentinels do not name the promoted server")
	}
	wantSet(t, client)

	first.Restart()
	began = time.Now()
	s.WaitReady()
	t.Logf("demoted after %v", time.Since(began).Round(time.Millisecond))
	if s.Primary() != second {
		t.Fatal("the old primary is the primary again")
	}

	began = time.Now()
	second.Stop()
	s.WaitPromoted(first)
	t.Logf("promoted after %v", time.Since(began).Round(time.Millisecond))
	second.Continue()
	for _, sentinel := range s.Sentinels() {
		sentinel.Stop()
		sentinel.Continue()
		sentinel.Kill()
		sentinel.Restart()
	}
	began = time.Now()
	s.WaitReady()
	t.Logf("all well after %v", time.Since(began).Round(time.Millisecond))
	if s.Primary() != first {
		t.Error("the sentinels have forgotten whom they promoted")
	}
}

func wantSet(t *testing.T, client redis.UniversalClient) {
	t.Helper()
	if err := client.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Errorf("SET: %v", err)
	}
}
