package tests

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
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

// TestTopDeniedOfACandidate: it lists the clients that the candidate would deny, and its event names them. The live list
// stays empty.
func TestTopDeniedOfACandidate(t *testing.T) {
	p, candidate := byIP("p", hourly), algorithms.TokenBucket(1, time.Hour)
	p.Candidate = &candidate
	var diverged []string
	m := newMiddleware(t, newStill(t), &ratelimit.Options{Observers: []ratelimit.Observer{ratelimit.ObserverFunc(func(_ context.Context, e ratelimit.Event) {
		if e.Kind == ratelimit.Diverged {
			diverged = append(diverged, e.Key)
		}
	})}}, p)
	deny(m, "192.0.2.1", 3)
	deny(m, "192.0.2.2", 1)
	got := m.TopDenied("p~candidate", 10)
	if len(got) != 1 || got[0].Plain != "ip=192.0.2.1" || got[0].Denied != 2 || len(m.TopDenied("p", 10)) != 0 {
		t.Errorf("got %+v, and live %+v, want one client with two denials, and none", got, m.TopDenied("p", 10))
	}
	if want := "ip=#" + shaOf("ip=192.0.2.1"); len(diverged) != 2 || diverged[0] != want {
		t.Errorf("got events about %q, want two about %s", diverged, want)
	}
	if err := m.Update(p); err != nil || len(m.TopDenied("p~candidate", 10)) != 1 {
		t.Errorf("got %+v after an Update, %v, want the same client", m.TopDenied("p~candidate", 10), err)
	}
}

// TestTopDeniedKnowsTheLimit: the tier of the last denial, and the limit of LimitOf, but not an override's.
func TestTopDeniedKnowsTheLimit(t *testing.T) {
	table, own := overrides.NewMemory(), algorithms.Nobody()
	p := byPlan("p", algorithms.Nobody(), map[string]algorithms.Limit{"pro": algorithms.Nobody()})
	p.LimitOf = func(r *http.Request) (l algorithms.Limit, err error) {
		if r.Header.Get("X-Own") != "" {
			l = own
		}
		return l, nil
	}
	m := newMiddleware(t, newStill(t), &ratelimit.Options{Overrides: table}, p)
	for _, tt := range []struct {
		r       *http.Request
		tier    string
		limitOf algorithms.Limit
	}{
		{onPlan(from("192.0.2.1"), "pro"), "pro", algorithms.Limit{}},
		{onPlan(from("192.0.2.1"), "unknown"), "", algorithms.Limit{}},
		{with(onPlan(from("192.0.2.1"), "pro"), "X-Own", "1"), "pro", own},
	} {
		if _, err := m.Check(tt.r); err != nil {
			t.Fatal(err)
		}
		if got := m.TopDenied("p", 1)[0]; got.Tier != tt.tier || got.LimitOf != tt.limitOf {
			t.Errorf("got %+v, want tier %q and %v", got, tt.tier, tt.limitOf)
		}
	}
	if err := table.Set(t.Context(), "p", "usr=me", ratelimit.Override{Limit: own}); err != nil {
		t.Fatal(err)
	}
	_, _ = m.Check(with(onPlan(from("192.0.2.1"), "pro"), "X-Own", "1"))
	if got := m.TopDenied("p", 1)[0]; got.LimitOf != (algorithms.Limit{}) {
		t.Errorf("got %v under an override, want none", got.LimitOf)
	}
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
