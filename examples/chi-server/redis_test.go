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

// TestPrefix: every key is below the prefix, expires, and holds no API key.
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
		s.send(t, "GET /v1/reports", "", "X-API-Key", "guess")
		s.send(t, "POST /v1/login", wrong) // the right one leaves nothing
		s.send(t, "POST /v1/sms", "")
		s.send(t, "POST /v1/charges", "", "Authorization", "Bearer demo-free") // two policies
		s.send(t, "GET /nothing", "")
		s.send(t, "GET /healthz", "")
		keys, err := redis.Client().Keys(ctx, "*").Result()
		if err != nil {
			t.Fatal(err)
		}
		// What charges-global counts is gone after a millisecond, and what the
		// server tried at its start is a moment later.
		keys = slices.DeleteFunc(keys, func(key string) bool { return strings.Contains(key, "penstock~ready") })
		if instances := tt.prefix + "{instances}"; !slices.Contains(keys, instances) {
			t.Errorf("%v: got keys %q, want %q among them", tt.args, keys, instances)
		}
		if len(keys) != 8 && len(keys) != 9 {
			t.Errorf("%v: got keys %q, want one per policy, and the instances", tt.args, keys)
		}
		for _, key := range keys {
			if !strings.HasPrefix(key, tt.prefix) || strings.Contains(key, "demo") || strings.Contains(key, "guess") {
				t.Errorf("%v: got key %q, want prefix %q and no API key", tt.args, key, tt.prefix)
			}
			if ttl, err := redis.Client().PTTL(ctx, key).Result(); err != nil || ttl == forever {
				t.Errorf("%v: %q: got time to live %v and error %v, want that it ends", tt.args, key, ttl, err)
			}
		}
	}
}

// TestShared: servers on one Redis and prefix are one limit.
func TestShared(t *testing.T) {
	t.Parallel()
	url := "redis://" + redistest.Start(t).Addr()
	servers := []*server{start(t, "-redis", url), start(t, "-redis", url)}
	for i := range 7 {
		want := http.StatusUnauthorized
		if i >= 5 {
			want = http.StatusTooManyRequests
		}
		if r := servers[i%2].send(t, "POST /v1/login", wrong); r.status != want {
			t.Errorf("login %d: got %d, want %d", i, r.status, want)
		}
	}
	for _, args := range [][]string{{"-redis", url, "-prefix", "other"}, {"-redis", url + "/1"}, nil} {
		if r := start(t, args...).send(t, "POST /v1/login", wrong); r.left() != 4 {
			t.Errorf("%v: got %d left, want 4, as it counts alone", args, r.left())
		}
	}
}
