package instruments

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
)

// A tab is a Tab whose clock the test sets.
type tab struct {
	*Tab
	now time.Time
}

func newTab() *tab {
	t := &tab{now: time.Date(2025, time.December, 31, 23, 59, 0, 0, time.UTC)}
	t.Tab = NewTab(func() time.Time { return t.now })
	return t
}

// sandbox makes a sandbox and returns its path.
func (b *tab) sandbox(t *testing.T, limit string) string {
	t.Helper()
	a := b.Answer("POST", "/demo/sandboxes", fmt.Sprintf(`{"limit":%q}`, limit))
	var made struct{ ID, Limit string }
	if err := json.Unmarshal([]byte(a.Body), &made); err != nil || a.Status != 201 || made.ID == "" {
		t.Fatalf("%s: got %+v, want a sandbox", limit, a)
	}
	return "/demo/sandboxes/" + made.ID
}

func (a Answer) header() http.Header {
	h := make(http.Header)
	for _, f := range a.Fields {
		h.Add(f[0], f[1])
	}
	return h
}

// TestFields: the fields of random requests are those that package headers writes for the same decisions.
func TestFields(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, algorithm := range []string{"token-bucket", "leaky-bucket", "sliding-window-counter", "sliding-window-log", "fixed-window"} {
		for range 40 {
			b := newTab()
			text := fmt.Sprintf("%s %d/%ds", algorithm, 1+random.IntN(20), 1+random.IntN(60))
			switch algorithm {
			case "token-bucket":
				text += fmt.Sprint(" burst ", 1+random.IntN(30))
			case "leaky-bucket":
				text = fmt.Sprintf("leaky-bucket %d/10s burst %d", 5+random.IntN(20), 1+random.IntN(5))
			}
			limit, err := algorithms.ParseLimit(text)
			if err != nil {
				t.Fatal(err)
			}
			quota, err := headers.NewQuota(headers.QuotaConfig{
				Name: policy, Limit: limit.Burst(), Requests: limit.Requests(), Window: limit.Window(), Continuous: limit.Algorithm().Continuous(),
			})
			if err != nil {
				t.Fatal(err)
			}
			for range 40 {
				cost := int64(1 + random.IntN(4))
				d, err := b.decide(addSandbox(b, limit), cost)
				if err != nil {
					t.Fatal(err)
				}
				want := make(http.Header)
				headers.Dialect(0).Write(want, headers.Response{
					Quotas: []*headers.Quota{quota}, Denied: !d.Allowed, RetryAfter: d.RetryAfter, Now: b.now,
					States: []headers.State{{Quota: quota, Denied: !d.Allowed, Remaining: d.Remaining, RetryAfter: d.RetryAfter, ResetAfter: d.ResetAfter, UnitAfter: d.UnitAfter}},
				})
				if got := (Answer{Fields: quotaFields(limit, d)}).header(); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("%s, cost %d, %+v: got %v, want %v", text, cost, d, got, want)
				}
				b.now = b.now.Add(time.Duration(random.Int64N(int64(limit.Window()) / 2)))
			}
		}
	}
}

func addSandbox(b *tab, limit algorithms.Limit) (id string) {
	b.limits["a"] = limit
	return "a"
}

func TestTab(t *testing.T) {
	t.Parallel()
	b := newTab()
	box, other := b.sandbox(t, "1/1m burst 5"), b.sandbox(t, "1/1m burst 5")
	for _, tt := range []struct {
		target, body string
		status       int
		left         string
	}{
		{box + "/requests", "", 200, "4"},
		{box + "/requests?cost=3", "", 200, "1"},
		{box + "/requests?cost=2", "", 429, "1"},
		{box + "/requests?cost=-7", "", 200, "0"}, // one
		{box + "/requests", "", 429, "0"},
		{other + "/requests", "", 200, "4"},
		{box + "/limit", `{"limit":"1/1m burst 8"}`, 200, ""},
		{box + "/requests", "", 200, "2"}, // units in use stay in use
		{box + "/limit", `{"limit":"fixed-window 8/1m"}`, 200, ""},
		{box + "/requests", "", 200, "7"}, // another algorithm has another count
		{box + "/limit", `{"limit":"leaky-bucket 1/1m burst 2"}`, 400, ""},
		{box + "/limit", `{"limit":"nobody"}`, 400, ""},
		{box + "/limit", `words`, 400, ""},
		{"/demo/sandboxes", `{"limit":"words"}`, 400, ""},
		{"/demo/sandboxes/none/requests", "", 404, ""},
		{"/demo/compare?at=0", "", 404, ""}, // POST
		{":", "", 400, ""},
	} {
		a := b.Answer("POST", tt.target, tt.body)
		if left := a.header().Get("RateLimit-Remaining"); a.Status != tt.status || left != tt.left {
			t.Errorf("%s: got %+v, want %d and %q left", tt.target, a, tt.status, tt.left)
		}
	}
	if a := b.Answer("GET", box+"/level", ""); a.Status != 200 || a.Body != `{"burst":8,"limit":"fixed-window 8/1m","remaining":7,"source":"local"}` {
		t.Errorf("got the level %+v", a)
	}
	if a := b.Answer("GET", "/demo/routes", ""); a.Body != `{"redis":false,"routes":[],"server":"tab"}` {
		t.Errorf("got the routes %+v", a)
	}
}

// TestHold: a request in the queue of a leaky bucket waits for its turn.
func TestHold(t *testing.T) {
	t.Parallel()
	b := newTab()
	box := b.sandbox(t, "leaky-bucket 2/1s burst 3")
	var got []time.Duration
	for range 4 {
		got = append(got, b.Answer("POST", box+"/requests", "").Hold)
	}
	if want := []time.Duration{0, time.Second / 2, time.Second, 0}; !slices.Equal(got, want) {
		t.Errorf("got holds of %v, want %v: the last request is denied", got, want)
	}
}
