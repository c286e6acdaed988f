// Tests of the status page, as HTML and as JSON.

package middleware_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/overrides"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/redistest"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// seen is what tests read of a status page.
type seen struct {
	Requests, Refused uint64
	WindowMS          int64 `json:"window_ms"`
	Policies          []struct {
		Name, Limit, Fail string
		Modes             []string
		Overrides         int
		Everyone          *overrides.Override
		Requests          uint64
		Outcomes          map[string]uint64
		Offenders         []struct {
			Key    string
			Denied uint64
		}
	}
	Decisions []struct {
		Source string
		Count  uint64
		P50    time.Duration `json:"p50_ns"`
		P99    time.Duration `json:"p99_ns"`
	}
	Limiters []struct {
		Name, Kind, Breaker string
		Instances           int
		Stats               algorithms.Stats
	}
	Findings []ratelimit.Finding
}

func look(t *testing.T, s *ratelimit.Status) (v seen) {
	t.Helper()
	w := record(s, httptest.NewRequest("GET", "/", nil))
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil || w.Code != 200 {
		t.Fatalf("got %d, %v: %s", w.Code, err, w.Body)
	}
	return v
}

// TestStatusCounts: the page says what was sent, and for how long.
func TestStatusCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status, memory, table := ratelimit.NewStatus(), newMemory(t), overrides.NewMemory()
		live := byIP("live", algorithms.TokenBucket(3, time.Hour))
		live.ShowKeys = ratelimit.ShowPlain
		shadow := byIP("shadow", algorithms.TokenBucket(1, time.Hour))
		shadow.Shadow = true
		keyed := ratelimit.Policy{Name: "keyed", Key: keyfunc.Header("X-Tenant"), Limit: hourly, Private: true, Late: true, Cost: costOf(1)}
		m := newMiddleware(t, memory, &ratelimit.Options{Observer: status, Overrides: table, Logger: quiet}, live, shadow)
		other := newMiddleware(t, memory, &ratelimit.Options{Observer: status, Logger: quiet}, keyed)
		status.Watch(m, other, m)
		if err := status.WatchLimiter("memory", memory); err != nil {
			t.Fatal(err)
		}
		for range 6 {
			record(m.Handler(ok), from("192.0.2.1"))
		}
		record(other.Handler(ok), from("192.0.2.1"))
		_ = table.Set(context.Background(), "live", "ip=192.0.2.2", overrides.Override{Mode: overrides.Off})
		_ = table.Set(context.Background(), "live", "ip=192.0.2.3", overrides.Override{Mode: overrides.Off, Until: time.Now().Add(time.Second)})
		_ = table.Set(context.Background(), "shadow", overrides.Everyone, overrides.Override{Mode: overrides.Off})
		time.Sleep(2 * time.Second)

		v := look(t, status)
		if v.Requests != 7 || v.Refused != 4 || v.WindowMS != 2000 || len(v.Policies) != 3 {
			t.Fatalf("got %d requests, %d refused, in %d ms, of %d policies", v.Requests, v.Refused, v.WindowMS, len(v.Policies))
		}
		for i, want := range []struct {
			name, modes string
			outcomes    map[string]uint64
		}{
			{"live", "[]", map[string]uint64{"allowed": 3, "denied": 3}},
			{"shadow", "[shadow]", map[string]uint64{"allowed": 1, "shadow_denied": 5}},
			{"keyed", "[private late]", map[string]uint64{"key_error": 1}},
		} {
			p := v.Policies[i]
			if p.Name != want.name || fmt.Sprint(p.Modes) != want.modes || !maps.Equal(p.Outcomes, want.outcomes) {
				t.Errorf("got %s %v %v, want %v", p.Name, p.Modes, p.Outcomes, want)
			}
		}
		if p := v.Policies[0]; p.Overrides != 1 || len(p.Offenders) != 1 || p.Offenders[0].Key != "ip=192.0.2.1" || p.Offenders[0].Denied != 3 {
			t.Errorf("got %+v, want one override in force, and one offender", p)
		}
		if p := v.Policies[1]; p.Overrides != 1 || p.Everyone == nil || p.Everyone.Mode != overrides.Off || !strings.HasPrefix(p.Offenders[0].Key, "ip=#") {
			t.Errorf("got %+v, want an override of everyone, and an offender who is hashed", p)
		}
		if d := v.Decisions[1]; d.Source != "local" || d.Count != 6 || v.Decisions[0].Count+v.Decisions[2].Count != 0 {
			t.Errorf("got %+v, want 6 that were local", v.Decisions)
		}
		if l := v.Limiters[0]; l.Name != "memory" || l.Kind != "memory" || l.Breaker != "" || l.Stats.Memory.Keys != 2 || l.Stats.Shared {
			t.Errorf("got %+v, want a Memory of 2 keys", l)
		}
		time.Sleep(70 * time.Second)
		if v := look(t, status); v.Requests != 0 || v.Decisions[1].Count != 0 || len(v.Policies[0].Outcomes) != 0 {
			t.Errorf("a minute later: got %+v, want nothing", v)
		}
	})
}

// TestStatusDurations: the median and the 99th percentile are those of the decisions, to within a sixteenth.
func TestStatusDurations(t *testing.T) {
	status := ratelimit.NewStatus()
	for i := range 100 {
		status.Observe(context.Background(), ratelimit.Event{
			Kind: ratelimit.Decided, Elapsed: time.Duration(i+1) * ms,
			Verdict: ratelimit.Verdict{Allowed: true, Policies: []ratelimit.PolicyVerdict{{
				Name: "p", Decision: algorithms.Decision{Allowed: true, Source: algorithms.Shared},
			}}},
		})
	}
	d := look(t, status).Decisions[0]
	if d.Source != "shared" || d.Count != 100 || (d.P50-50*ms).Abs() > 50*ms/16 || (d.P99-99*ms).Abs() > 99*ms/16 {
		t.Errorf("got %+v, want a median of 50ms and a p99 of 99ms", d)
	}
}

// TestStatusOfAnySource: a limiter that is not one of ours may say what it likes.
func TestStatusOfAnySource(t *testing.T) {
	status := ratelimit.NewStatus()
	m := newMiddleware(t, says(algorithms.Decision{Allowed: true, Source: 9}), &ratelimit.Options{Observer: status}, byIP("p", hourly))
	record(m.Handler(ok), from("192.0.2.1"))
	if v := look(t, status); v.Requests != 1 || v.Refused != 0 {
		t.Errorf("got %+v, want one request", v)
	}
}

func TestStatusLimiters(t *testing.T) {
	status := ratelimit.NewStatus()
	limiter := newShared(t, redistest.Script(nil, redistest.Fail(errors.New("down"))), shared.Options{Instances: 3, Deadline: ms})
	if err := errors.Join(status.WatchLimiter("redis", limiter), status.WatchLimiter("mine", limiterFunc(nil))); err == nil ||
		!strings.Contains(err.Error(), `"mine" is a middleware_test.limiterFunc, which has no Stats`) {
		t.Errorf("got %v, want that a limiter has no Stats", err)
	}
	if l := look(t, status).Limiters; len(l) != 1 || l[0].Kind != "shared" || l[0].Breaker != "closed" || l[0].Instances != 3 {
		t.Errorf("got %+v, want one of 3 instances, whose circuit is closed", l)
	}
	for !limiter.Stats().Fallback.Open {
		left(t, limiter, byIP("p", hourly), "ip=192.0.2.1")
	}
	page := record(status, httptest.NewRequest("GET", "/?format=html", nil)).Body.String()
	if l := look(t, status).Limiters[0]; l.Breaker != "open" || !strings.Contains(page, "<title>Rate limits: Redis is not available</title>") {
		t.Errorf("got %+v of an open circuit, and this page:\n%s", l, page)
	}
}

func TestStatusNegotiates(t *testing.T) {
	status := ratelimit.NewStatus()
	const html, asJSON, problem = "text/html; charset=utf-8", "application/json", "application/problem+json"
	for _, tt := range []struct {
		method, query, accept string
		status                int
		kind                  string
	}{
		{"GET", "", "text/html,application/xhtml+xml,*/*;q=0.8", 200, html},
		{"GET", "", "*/*", 200, asJSON},
		{"GET", "", "", 200, asJSON},
		{"GET", "", "text/html;q=0.3, application/json;q=0.2", 200, html},
		{"GET", "", "image/png", 406, problem},
		{"GET", "?format=json", "text/html", 200, asJSON},
		{"GET", "?format=html", "*/*", 200, html},
		{"GET", "?format=xml", "*/*", 400, problem},
		{"HEAD", "", "text/html", 200, html},
		{"HEAD", "", "", 200, asJSON},
		{"POST", "", "", 405, problem},
		{"OPTIONS", "", "", 405, problem},
	} {
		r := httptest.NewRequest(tt.method, "/"+tt.query, nil)
		if tt.accept != "" {
			r.Header.Set("Accept", tt.accept)
		}
		w := record(status, r)
		h := w.Header()
		if w.Code != tt.status || h.Get("Content-Type") != tt.kind || h.Get("Cache-Control") != "no-store" || h.Get("Vary") != "Accept" {
			t.Errorf("%+v: got %d, %v", tt, w.Code, h)
		}
		if tt.status == 405 && h.Get("Allow") != "GET, HEAD" {
			t.Errorf("%+v: got Allow %q", tt, h.Get("Allow"))
		}
		if tt.method == "HEAD" && (w.Body.Len() != 0 || h.Get("Content-Length") == "0") {
			t.Errorf("%+v: got %d bytes, and that there would be %s", tt, w.Body.Len(), h.Get("Content-Length"))
		}
	}
}

// TestStatusPage: the page is well-formed, loads nothing, and shows no markup of anybody's making.
func TestStatusPage(t *testing.T) {
	const attack = `<script>alert(1)</script>`
	status, memory := ratelimit.NewStatus(), newMemory(t)
	p := ratelimit.Policy{
		Name: "p", Key: keyfunc.Header("X-Tenant"), Limit: algorithms.TokenBucket(1, time.Hour), ShowKeys: ratelimit.ShowPlain,
		Tier: func(*http.Request) string { return "" }, Tiers: map[string]algorithms.Limit{attack: hourly},
	}
	m := newMiddleware(t, memory, &ratelimit.Options{Observer: status, Logger: quiet}, p)
	status.Watch(m)
	if err := status.WatchLimiter(attack, memory); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		record(m.Handler(ok), with(from("192.0.2.1"), "X-Tenant", attack))
	}
	w := record(status, httptest.NewRequest("GET", "/?format=html&reload=10", nil))
	page := w.Body.String()
	const escaped = "&lt;script&gt;alert(1)&lt;/script&gt;"
	if strings.Contains(page, "<script") || strings.Count(page, escaped) != 3 || !strings.Contains(page, "hdr.x-tenant="+escaped) {
		t.Errorf("the attack is not escaped, or not there as key, tier and limiter:\n%s", page)
	}
	for _, link := range regexp.MustCompile(`(?:href|src|action|url\()=?"?([^"\s)]*)`).FindAllStringSubmatch(page, -1) {
		if !strings.HasPrefix(link[1], "?") {
			t.Errorf("the page refers to %q", link[1])
		}
	}
	if !strings.Contains(page, `<meta http-equiv="refresh" content="10">`) {
		t.Error("the page does not reload, as it was asked to")
	}
	style := regexp.MustCompile(`(?s)<style>(.*)</style>`).FindStringSubmatch(page)
	sum := sha256.Sum256([]byte(style[1]))
	want := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	if got := w.Header().Get("Content-Security-Policy"); got != want || strings.Contains(page, "style=") {
		t.Errorf("got %q, want %q, and no style elsewhere", got, want)
	}
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	empty := record(ratelimit.NewStatus(), httptest.NewRequest("GET", "/?format=html", nil)).Body.String()
	for _, says := range []string{"all is well", "No middleware is watched", "Nobody was denied", "Reload every 10 s"} {
		if !strings.Contains(empty, says) {
			t.Errorf("the page of nothing does not say %q", says)
		}
	}
}

// TestObservers: each is told, in order; those that are nil are left out.
func TestObservers(t *testing.T) {
	var told []string
	named := func(name string) ratelimit.Observer {
		return ratelimit.ObserverFunc(func(context.Context, ratelimit.Event) { told = append(told, name) })
	}
	ratelimit.Observers(named("a"), nil, named("b")).Observe(context.Background(), ratelimit.Event{})
	ratelimit.Observers(nil, named("c")).Observe(context.Background(), ratelimit.Event{})
	if fmt.Sprint(told) != "[a b c]" || ratelimit.Observers(nil) != nil || ratelimit.Observers() != nil {
		t.Errorf("told %v, want [a b c]", told)
	}
}

// BenchmarkStatus is what a request pays that has a Status for its observer.
func BenchmarkStatus(b *testing.B) {
	for _, n := range []int{1, 3} {
		status, v := ratelimit.NewStatus(), ratelimit.Verdict{Allowed: true}
		for i := range n {
			v.Policies = append(v.Policies, ratelimit.PolicyVerdict{
				Name: fmt.Sprint("policy-", i), Decision: algorithms.Decision{Allowed: true, Source: algorithms.Shared},
			})
		}
		e := ratelimit.Event{Kind: ratelimit.Decided, Verdict: v, Elapsed: ms}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				status.Observe(context.Background(), e)
			}
		})
	}
}
