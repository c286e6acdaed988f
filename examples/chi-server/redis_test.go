// Tests of the stored keys, and of instances that share them.

package main

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/internal/redistest"
)

const forever = -1 // of PTTL

// TestPrefix: every stored key has the prefix and a TTL, and contains no API key.
func TestPrefix(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	tests := []struct {
		args   []string
		prefix string
	}{
		{nil, "penstock:"},
		{[]string{"-prefix", "shop"}, "shop:"},
	}
	for _, tt := range tests {
		ctx := context.Background()
		if err := redis.Client().FlushAll(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		s := start(t, append([]string{"-redis", "redis://" + redis.Addr()}, tt.args...)...)
		s.send(t, "GET /v1/orders/1", "")
		s.send(t, "GET /v1/search", "", "X-API-Key", "demo-pro")
		s.send(t, "GET /v1/reports", "")
		s.send(t, "GET /v1/reports", "", "X-API-Key", "guess") // leaves no key
		s.send(t, "POST /v1/login", wrong)                     // a successful login leaves no key
		s.send(t, "POST /v1/sms", "")
		s.send(t, "POST /v1/charges", "", "Authorization", "Bearer demo-free") // two policies
		s.send(t, "GET /nothing", "")
		s.send(t, "GET /healthz", "")
		keys, err := redis.Client().Keys(ctx, "*").Result()
		if err != nil {
			t.Fatal(err)
		}
		// The count of charges-capacity expires after a millisecond, other buckets
		// within a second, and the key of the test at startup a moment later.
		keys = slices.DeleteFunc(keys, func(key string) bool { return strings.Contains(key, "penstock~ready") })
		for _, part := range []string{"{instances}", ":login:", ":reports:", ":search:"} {
			if !slices.ContainsFunc(keys, func(key string) bool { return strings.Contains(key, part) }) {
				t.Errorf("%v: got keys %q, want %q among them", tt.args, keys, part)
			}
		}
		if len(keys) > 11 {
			t.Errorf("%v: got keys %q, want at most one per policy, and the key of the instances", tt.args, keys)
		}
		for _, key := range keys {
			if !strings.HasPrefix(key, tt.prefix) || strings.Contains(key, "demo-") || strings.Contains(key, "guess") {
				t.Errorf("%v: got key %q, want prefix %q and no API key", tt.args, key, tt.prefix)
			}
			if ttl, err := redis.Client().PTTL(ctx, key).Result(); err != nil || ttl == forever {
				t.Errorf("%v: %q: got time to live %v and error %v, want a TTL", tt.args, key, ttl, err)
			}
		}
	}
}

// TestShared: servers with the same Redis and prefix limit together.
func TestShared(t *testing.T) {
	t.Parallel()
	url := "redis://" + redistest.Start(t).Addr()
	servers := []*server{start(t, "-redis", url), start(t, "-redis", url)}
	for i := range 7 {
		want := http.StatusUnauthorized
		if i >= 5 {
			want = http.StatusTooManyRequests
		}
		if r := servers[i%2].login(t, wrong); r.status != want {
			t.Errorf("login %d: got %d, want %d", i, r.status, want)
		}
	}
	for _, args := range [][]string{{"-redis", url, "-prefix", "other"}, {"-redis", url + "/1"}, nil} {
		if r := start(t, args...).login(t, wrong); r.left() != 4 {
			t.Errorf("%v: got %d left, want 4, because it counts alone", args, r.left())
		}
	}
}

// TestCluster: a URL with addr names a Redis Cluster.
func TestCluster(t *testing.T) {
	t.Parallel()
	url := "redis://"
	for i, node := range redistest.StartCluster(t).Nodes() {
		url += []string{"", "?addr=", "&addr="}[min(i, 2)] + node.Addr()
	}
	s := start(t, "-redis", url)
	if r := s.login(t, right); r.status != http.StatusOK || r.left() != 4 {
		t.Errorf("got %d and %d left, want 200 and 4", r.status, r.left())
	}
}
