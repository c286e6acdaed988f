package ratelimit_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// deny has policies that admit no client deny a client n times.
func deny(m *ratelimit.Middleware, ip string, times int) {
	for range times {
		_, _ = m.Check(from(ip)) // no request is admitted, and nothing fails
	}
}

// TestTopDenied: the list has the denied clients, how often, and when.
func TestTopDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plain, shadow := byIP("plain", algorithms.Nobody()), byIP("shadow", algorithms.Nobody())
		shadow.Shadow = true
		m := newMiddleware(t, newMemory(t), &ratelimit.Options{PlainKeys: true}, plain, byIP("admits", hourly), shadow)
		start := time.Now()
		deny(m, "192.0.2.1", 3)
		time.Sleep(time.Minute)
		deny(m, "192.0.2.2", 5)
		deny(m, "192.0.2.1", 1)

		want := []ratelimit.Offender{
			{Key: "ip=192.0.2.2", Plain: "ip=192.0.2.2", Denied: 5, Of: 9, First: start.Add(time.Minute), Last: start.Add(time.Minute)},
			{Key: "ip=192.0.2.1", Plain: "ip=192.0.2.1", Denied: 4, Of: 9, First: start, Last: start.Add(time.Minute)},
		}
		got := m.TopDenied("plain", 10)
		if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if got := m.TopDenied("plain", 1); len(got) != 1 || got[0] != want[0] {
			t.Errorf("got %+v, want the first", got)
		}
		if got := m.TopDenied("shadow", 10); len(got) != 2 || got[0].Denied != 5 {
			t.Errorf("got %+v of a shadow, want both", got)
		}
		m = newMiddleware(t, newMemory(t), nil, byIP("admits", hourly), shadow)
		deny(m, "192.0.2.1", 1)
		if got := m.TopDenied("shadow", 10); len(got) != 1 {
			t.Errorf("got %+v of a shadow whose requests pass, want who would be denied", got)
		}
		for policy, n := range map[string]int{"admits": 10, "unknown": 10, "plain": 0} {
			if got := m.TopDenied(policy, n); len(got) != 0 {
				t.Errorf("%s, %d: got %+v, want nobody", policy, n, got)
			}
		}
	})
}

// TestTopDeniedIsNotAboutTrouble: a client that is refused without a decision is not listed.
func TestTopDeniedIsNotAboutTrouble(t *testing.T) {
	closed := byIP("p", hourly)
	closed.Fail = algorithms.FailClosed
	m := newMiddleware(t, broken(errDown), &ratelimit.Options{Logger: quiet}, closed)
	deny(m, "192.0.2.1", 3)
	if got := m.TopDenied("p", 10); len(got) != 0 {
		t.Errorf("got %+v, want nobody", got)
	}
}

// TestShownKeys: operators see the kind and a part of the hash, unless the options show keys.
func TestShownKeys(t *testing.T) {
	joined := keyfunc.Join(keyfunc.IP(nil), keyfunc.Const("login"))
	for plain, want := range map[bool]string{
		false: "ip=#" + shaOf("ip=192.0.2.1") + "|const=login", // printf ip=192.0.2.1 | sha256sum
		true:  "ip=192.0.2.1|const=login",
	} {
		m := newMiddleware(t, newStill(t), &ratelimit.Options{PlainKeys: plain}, ratelimit.Policy{Name: "p", Key: joined, Limit: algorithms.Nobody()})
		deny(m, "192.0.2.1", 1)
		if got := m.TopDenied("p", 1); len(got) != 1 || got[0].Key != want {
			t.Errorf("got %+v, want %q", got, want)
		}
	}
}
