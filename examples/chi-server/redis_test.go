package main

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

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
		s.send(t, "POST /v1/login", right)
		s.send(t, "POST /v1/sms", "")
		s.send(t, "POST /v1/charges", "", "Authorization", "Bearer demo-free") // two policies
		s.send(t, "GET /nothing", "")
		s.send(t, "GET /healthz", "")
		keys, err := redis.Client().Keys(ctx, "*").Result()
		if err != nil {
			t.Fatal(err)
		}
		// What charges-global counts is gone after a millisecond.
		if len(keys) != 7 && len(keys) != 8 {
			t.Errorf("%v: got keys %q, want one per policy", tt.args, keys)
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
		want := http.StatusOK
		if i >= 5 {
			want = http.StatusTooManyRequests
		}
		if r := servers[i%2].send(t, "POST /v1/login", right); r.status != want {
			t.Errorf("login %d: got %d, want %d", i, r.status, want)
		}
	}
	for _, args := range [][]string{{"-redis", url, "-prefix", "other"}, {"-redis", url + "/1"}, nil} {
		if r := start(t, args...).send(t, "POST /v1/login", right); r.left() != 4 {
			t.Errorf("%v: got %d left, want 4, as it counts alone", args, r.left())
		}
	}
}

// TestRedisDies: logins fail closed, everything else passes, and the log says so.
func TestRedisDies(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	s := start(t, "-redis", "redis://"+redis.Addr())
	redis.Kill()
	tests := []struct {
		line   string
		key    string
		status int
	}{
		{"POST /v1/login", "", http.StatusServiceUnavailable},
		{"GET /v1/orders/1", "demo-free", http.StatusOK},
		{"POST /v1/charges", "demo-pro", http.StatusOK},
		{"POST /v1/charges", "", http.StatusUnauthorized},
		{"GET /healthz", "", http.StatusOK},
	}
	for _, tt := range tests {
		var fields []string
		if tt.key != "" {
			fields = []string{"X-API-Key", tt.key}
		}
		r := s.send(t, tt.line, right, fields...)
		if r.status != tt.status {
			t.Errorf("%s: got %d, want %d", tt.line, r.status, tt.status)
		}
		if got := r.header.Get("RateLimit"); got != "" {
			t.Errorf("%s: got RateLimit %q without a decision, want none", tt.line, got)
		}
	}
	for _, want := range []string{"policies that fail closed refuse", "requests pass"} {
		if log := s.log.String(); !strings.Contains(log, want) {
			t.Errorf("got log\n%s\nwant %q in it", log, want)
		}
	}
}

// TestNoRedis: a Redis that does not serve at start ends the program with a message, soon.
func TestNoRedis(t *testing.T) {
	t.Parallel()
	const soon = 4 * time.Second
	tests := []struct {
		name    string
		args    []string
		prepare func(*redistest.Server)
		want    string
	}{
		{"dead", nil, (*redistest.Server).Kill, "connection refused"},
		{"hangs", nil, (*redistest.Server).Stop, "timeout"},
		{"wants a password", []string{"--requirepass", "secret"}, func(*redistest.Server) {}, "NOAUTH"},
	}
	var wg sync.WaitGroup // not parallel tests: they only wait
	for _, tt := range tests {
		redis := redistest.Start(t, tt.args...)
		tt.prepare(redis)
		wg.Go(func() {
			began := time.Now()
			code, said := runToEnd(t, "-redis", "redis://"+redis.Addr())
			if took := time.Since(began); took > soon {
				t.Errorf("%s: got an answer after %v, want it within %v", tt.name, took, soon)
			}
			want := "chi-server: cannot reach Redis at " + redis.Addr()
			if code != exitFailed || !strings.Contains(said, want) || !strings.Contains(said, tt.want) {
				t.Errorf("%s: got exit code %d and\n%s\nwant 1, %q and %q", tt.name, code, said, want, tt.want)
			}
		})
	}
	wg.Wait()
}
