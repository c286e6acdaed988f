// Tests of the limits in force.

package prommetrics_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// limitsIn returns the series of limit_window_seconds.
func limitsIn(t *testing.T, reg prometheus.Gatherer) map[string]float64 {
	t.Helper()
	values, _ := gather(t, reg)
	for name := range values {
		if !strings.HasPrefix(name, "ratelimit_limit_window_seconds{") {
			delete(values, name)
		}
	}
	return values
}

// TestLimits: the limit in force is the one of the configuration, or of an override of all keys.
func TestLimits(t *testing.T) {
	reg, table := prometheus.NewRegistry(), overrides.NewMemory()
	tiered := ratelimit.Policy{
		Name: "p", Key: tenant, Limit: algorithms.TokenBucket(60, time.Minute).WithBurst(5),
		Tiers: map[string]algorithms.Limit{"pro": algorithms.FixedWindow(7200, time.Hour)},
	}
	shadow := byIP("q", algorithms.Concurrent(3, time.Second))
	shadow.Shadow = true
	o := &ratelimit.Options{Observers: []ratelimit.Observer{newMetrics(t, reg)}, Overrides: table, Logger: quiet}
	m := ratelimit.Must(ratelimit.New(newMemory(t), o, tiered, shadow))
	ratelimit.Must(ratelimit.New(newMemory(t), o, shadow)) // the same policy again
	want := map[string]float64{
		"ratelimit_limit_window_seconds{capacity=false,limit=token-bucket 60/1m burst 5,mode=on,policy=p,tier=}": 60,
		"ratelimit_limit_window_seconds{capacity=false,limit=fixed-window 7200/1h,mode=on,policy=p,tier=pro}":    3600,
		"ratelimit_limit_window_seconds{capacity=false,limit=concurrent 3/1s,mode=shadow,policy=q,tier=}":        1,
	}
	if got := limitsIn(t, reg); len(got) != len(want) {
		t.Errorf("got %v, want %v", got, want)
	} else {
		wants(t, got, want)
	}

	values, _ := gather(t, reg)
	wants(t, values, map[string]float64{
		"ratelimit_limit_units{policy=p,tier=}":    60,
		"ratelimit_limit_units{policy=p,tier=pro}": 7200,
		"ratelimit_limit_units{policy=q,tier=}":    3,
	})

	if err := table.Set(t.Context(), "p", ratelimit.Everyone, ratelimit.Override{Limit: algorithms.Nobody()}); err != nil {
		t.Fatal(err)
	}
	if err := table.Set(t.Context(), "q", ratelimit.Everyone, ratelimit.Override{Mode: ratelimit.ModeOff}); err != nil {
		t.Fatal(err)
	}
	wants(t, limitsIn(t, reg), map[string]float64{
		"ratelimit_limit_window_seconds{capacity=false,limit=nobody,mode=on,policy=p,tier=}":           0,
		"ratelimit_limit_window_seconds{capacity=false,limit=nobody,mode=on,policy=p,tier=pro}":        0,
		"ratelimit_limit_window_seconds{capacity=false,limit=concurrent 3/1s,mode=off,policy=q,tier=}": 1,
	})

	if err := m.Update(byIP("r", algorithms.TokenBucket(5, time.Second))); err != nil {
		t.Fatal(err)
	}
	if got := limitsIn(t, reg); len(got) != 2 || got["ratelimit_limit_window_seconds{capacity=false,limit=token-bucket 5/1s,mode=on,policy=r,tier=}"] != 1 {
		t.Errorf("got %v after an Update, want the limits of r and of the other q", got)
	}
}

// TestStartTime: rules add what a young process counted before its first scrape.
func TestStartTime(t *testing.T) {
	before := time.Now()
	reg := prometheus.NewRegistry()
	newMetrics(t, reg)
	values, _ := gather(t, reg)
	if got := values["ratelimit_start_time_seconds{}"]; got < float64(before.Unix()) || got > float64(time.Now().Unix()+1) {
		t.Errorf("got the start %v, want now", got)
	}
}

// TestIgnoredLimits: an override that requests ignore is not in force.
func TestIgnoredLimits(t *testing.T) {
	reg, table := prometheus.NewRegistry(), overrides.NewMemory()
	login := byIP("login", algorithms.TokenBucket(2, time.Second))
	login.ChargeIf = func(int) bool { return true }
	o := &ratelimit.Options{Observers: []ratelimit.Observer{newMetrics(t, reg)}, Overrides: table, Logger: quiet}
	ratelimit.Must(ratelimit.New(newMemory(t), o, login))
	if err := table.Set(t.Context(), "login", ratelimit.Everyone, ratelimit.Override{Limit: algorithms.LeakyBucket(500, time.Second)}); err != nil {
		t.Fatal(err)
	}
	const want = "ratelimit_limit_window_seconds{capacity=false,limit=token-bucket 2/1s,mode=on,policy=login,tier=}"
	if got := limitsIn(t, reg); len(got) != 1 || got[want] != 1 {
		t.Errorf("got %v, want %s", got, want)
	}
}

// TestShareMetrics: only a policy whose limit is shared has the gauges of shares.
func TestShareMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	p := byIP("p", algorithms.TokenBucket(60, time.Minute))
	p.Key, p.ShareBy, p.Weights = keyfunc.Const("all"), tenant, map[string]int64{"gold": 3}
	m := newMiddleware(t, newMemory(t), newMetrics(t, reg), p, byIP("q", hourly))
	values, _ := gather(t, reg)
	wants(t, values, map[string]float64{"ratelimit_tenants{policy=p}": 0, "ratelimit_share_units{policy=p}": 60})
	for _, key := range []string{"a", "b", "b", "c.gold"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("X-API-Key", key)
		if _, err := m.Check(r); err != nil {
			t.Fatal(err)
		}
	}
	values, _ = gather(t, reg)
	wants(t, values, map[string]float64{"ratelimit_tenants{policy=p}": 3, "ratelimit_share_units{policy=p}": 12})
	if _, ok := values["ratelimit_tenants{policy=q}"]; ok {
		t.Error("got tenants of q, which nobody shares")
	}
}
