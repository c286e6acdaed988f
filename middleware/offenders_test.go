package middleware_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// deny has a client denied so many times by policies that admit nobody.
func deny(m *ratelimit.Middleware, ip string, times int) {
	for range times {
		_, _ = m.Check(from(ip)) // nobody is admitted, and nothing fails
	}
}

// TestTopDenied says who is denied, how often, and when.
func TestTopDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plain, shadow := byIP("plain", algorithms.Nobody()), byIP("shadow", algorithms.Nobody())
		plain.ShowKeys = ratelimit.ShowPlain
		shadow.Shadow = true
		m := newMiddleware(t, newMemory(t), nil, plain, byIP("admits", hourly), shadow)
		start := time.Now()
		deny(m, "192.0.2.1", 3)
		time.Sleep(time.Minute)
		deny(m, "192.0.2.2", 5)
		deny(m, "192.0.2.1", 1)

		want := []ratelimit.Offender{
			{Key: "ip=192.0.2.2", Denied: 5, Of: 9, First: start.Add(time.Minute), Last: start.Add(time.Minute)},
			{Key: "ip=192.0.2.1", Denied: 4, Of: 9, First: start, Last: start.Add(time.Minute)},
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

// TestTopDeniedIsNotAboutTrouble: who is refused for want of a decision has done nothing.
func TestTopDeniedIsNotAboutTrouble(t *testing.T) {
	closed := byIP("p", hourly)
	closed.Fail = algorithms.FailClosed
	m := newMiddleware(t, broken(errDown), &ratelimit.Options{Logger: quiet}, closed)
	deny(m, "192.0.2.1", 3)
	if got := m.TopDenied("p", 10); len(got) != 0 {
		t.Errorf("got %+v, want nobody", got)
	}
}

// TestShowKeys: what is shown of keys is what the policy allows, and not more by default.
func TestShowKeys(t *testing.T) {
	joined := keyfunc.Join(keyfunc.IP(nil), keyfunc.Const("login"))
	for display, want := range map[ratelimit.KeyDisplay]string{
		// printf ip=192.0.2.1 | sha256sum
		ratelimit.ShowHashed: "ip=#" + shaOf("ip=192.0.2.1") + "|const=login",
		ratelimit.ShowPrefix: "ip=192.…|const=login",
		ratelimit.ShowPlain:  "ip=192.0.2.1|const=login",
	} {
		m := newMiddleware(t, newStill(t), nil, ratelimit.Policy{Name: "p", Key: joined, Limit: algorithms.Nobody(), ShowKeys: display})
		deny(m, "192.0.2.1", 1)
		if got := m.TopDenied("p", 1); len(got) != 1 || got[0].Key != want {
			t.Errorf("got %+v, want %q", got, want)
		}
	}
	_, err := ratelimit.New(newStill(t), nil, ratelimit.Policy{Name: "p", Key: joined, Limit: hourly, ShowKeys: 3})
	if err == nil || !strings.Contains(err.Error(), "key display 3") {
		t.Errorf("got %v, want the mistake", err)
	}
}

// TestDenialLog: at the debug level, the first denial of a key in a minute is a line, and of an attack a hundred are.
func TestDenialLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(logRecords)
		debug := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		m := newMiddleware(t, newMemory(t), &ratelimit.Options{Logger: debug}, byIP("p", algorithms.Nobody()))
		attack := func() []string {
			for i := range 300 {
				deny(m, fmt.Sprintf("192.0.%d.%d", i/100, i%100), 2)
			}
			return log.lines()
		}
		lines := attack()
		if len(lines) != 100 {
			t.Fatalf("got %d lines of 600 denials of 300 keys, want 100", len(lines))
		}
		want := `level=DEBUG msg="ratelimit: denied" policy=p key="ip=#` + shaOf("ip=192.0.0.0") + `" shadow=false`
		if !strings.Contains(lines[0], want) {
			t.Errorf("got %s, want %s", lines[0], want)
		}
		if got := attack(); len(got) != 0 {
			t.Errorf("got %d lines in the same minute, want none", len(got))
		}
		time.Sleep(time.Minute)
		lines = attack()
		if len(lines) != 100 || !strings.Contains(lines[0], "not_logged_before=800") {
			t.Errorf("got %d lines in the next minute, the first is %s; want 100, and that 800 are missing", len(lines), lines[0])
		}
		time.Sleep(time.Minute)
		if lines = attack(); !strings.Contains(lines[0], "not_logged_before=400") {
			t.Errorf("got %s, want that 400 more are missing", lines[0])
		}
	})
}
