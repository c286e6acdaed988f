// Helpers of the tests: limiters, policies, requests, and the page as JSON.

package statuspage_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/statuspage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ms = time.Millisecond

var (
	quiet  = slog.New(slog.DiscardHandler)
	hourly = algorithms.TokenBucket(10, time.Hour)
	ok     = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
)

// shownOn returns a Middleware that the page shows.
func shownOn(t testing.TB, page *statuspage.Page, l algorithms.Limiter, o ratelimit.Options, p ...ratelimit.Policy) *ratelimit.Middleware {
	t.Helper()
	o.Observers, o.Logger = []ratelimit.Observer{page}, quiet
	m, err := ratelimit.New(l, &o, p...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func byIP(name string, l algorithms.Limit) ratelimit.Policy {
	return ratelimit.Policy{Name: name, Key: keyfunc.IP(nil), Limit: l}
}

func from(ip string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = net.JoinHostPort(ip, "1234")
	return r
}

func record(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

type limiterFunc func(context.Context, []algorithms.Check) error

func (f limiterFunc) Allow(ctx context.Context, checks []algorithms.Check) error {
	return f(ctx, checks)
}

// A wrapper is a limiter around another one.
type wrapper struct{ algorithms.Limiter }

func (w wrapper) Unwrap() algorithms.Limiter { return w.Limiter }

// shown is the content of the page that the tests read.
type shown struct {
	Summary string
	Health  struct {
		Class, Text string
		Since       time.Time
	}
	Troubles []struct {
		Text  string
		Since time.Time
	}
	Instance struct {
		Name string
		PID  int
	}
	Clients []struct {
		Client     string
		Who        string
		Denied, Of uint64
		Keys       []struct {
			Policy, Key, Ban string
			Denied           uint64
		}
	}
	Near []struct {
		Client   string
		Admitted uint64
		Keys     []struct{ Policy, Key string }
	}
	Ticks                     struct{ Requests, Denied []uint32 }
	Requests, Refused, Denied uint64
	Latency                   struct {
		Count uint64
		P50   time.Duration `json:"p50_ns"`
		P99   time.Duration `json:"p99_ns"`
	}
	WindowMS int64 `json:"window_ms"`
	Policies []struct {
		Name, Limit, Fail string
		Tenants           int
		Share             string
		Modes             []string
		Overrides         int
		Everyone          *ratelimit.Override
		Requests          uint64
		Outcomes          map[string]uint64
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
	Findings []algorithms.Finding
}

func look(t *testing.T, page *statuspage.Page) (v shown) {
	t.Helper()
	w := record(page, httptest.NewRequest("GET", "/?format=json", nil))
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil || w.Code != 200 {
		t.Fatalf("got %d, %v: %s", w.Code, err, w.Body)
	}
	return v
}

// policies returns the names of the policies on the page.
func (v shown) policies() (names []string) {
	for _, p := range v.Policies {
		names = append(names, p.Name)
	}
	return names
}

// limiters returns the names of the limiters on the page.
func (v shown) limiters() (names []string) {
	for _, l := range v.Limiters {
		names = append(names, l.Name)
	}
	return names
}
