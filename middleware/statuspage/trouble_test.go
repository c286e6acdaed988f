// Tests of what the page says about trouble: its first sentence, its badge, and since when it lasts.

package statuspage_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/redistest"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
	"github.com/penstock-go/penstock/middleware/statuspage"
)

// TestSummary: the sentence says which requests are denied, by which policy, and for which clients.
func TestSummary(t *testing.T) {
	const memory = "; limits count in the memory of this process."
	for _, tt := range []struct {
		name    string
		clients map[string]int // requests by address
		want    string
		badge   string
	}{
		{"no requests", nil, "No request came in the last minute", "good Healthy"},
		{"no denials", map[string]int{"192.0.2.1": 4}, "None of 4 requests was denied in the last minute", "good Healthy"},
		{"one denial", map[string]int{"192.0.2.1": 5}, "1 of 5 requests (20 %) was denied in the last minute: p denied 1 of 5; one client received all denials over a limit: ip=192.0.2.1", "good Healthy"},
		{"all for one client", map[string]int{"192.0.2.1": 14}, "10 of 14 requests (71 %) were denied in the last minute: p denied 10 of 14; one client received all denials over a limit: ip=192.0.2.1", "warn p denies most requests"},
		{"most for one client", map[string]int{"192.0.2.1": 12, "192.0.2.2": 6}, "10 of 18 requests (55 %) were denied in the last minute: p denied 10 of 18; one client received 80 % of the denials over a limit: ip=192.0.2.1", "warn p denies most requests"},
		{"many clients", map[string]int{"192.0.2.1": 6, "192.0.2.2": 6}, "4 of 12 requests (33 %) were denied in the last minute: p denied 4 of 12; no client received more than 50 % of the denials over a limit", "good Healthy"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			page := statuspage.New(nil)
			p := byIP("p", algorithms.TokenBucket(4, time.Hour))
			m := shownOn(t, page, algorithms.NewMemory(nil), ratelimit.Options{PlainKeys: true}, p)
			for ip, n := range tt.clients {
				for range n {
					record(m.Handler(ok), from(ip))
				}
			}
			v := look(t, page)
			if v.Summary != tt.want+memory {
				t.Errorf("got %q, want %q", v.Summary, tt.want+memory)
			}
			if got := v.Health.Class + " " + v.Health.Text; got != tt.badge {
				t.Errorf("got the badge %q, want %q", got, tt.badge)
			}
		})
	}
}

// TestSummaryOfTheLatest: the sentence does not name a client that was denied minutes ago.
func TestSummaryOfTheLatest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := statuspage.New(nil)
		p := byIP("p", algorithms.Nobody())
		m := shownOn(t, page, algorithms.NewMemory(nil), ratelimit.Options{PlainKeys: true}, p)
		for range 9 {
			record(m.Handler(ok), from("192.0.2.1"))
		}
		time.Sleep(5 * time.Minute)
		record(m.Handler(ok), from("192.0.2.2"))
		if got := look(t, page).Summary; !strings.Contains(got, "p denied all of its requests; one of the denied clients is ip=192.0.2.2; ") {
			t.Errorf("got %q", got)
		}
	})
}

// TestAway: the page says since when Redis is away, and which policy refuses requests.
func TestAway(t *testing.T) {
	page := statuspage.New(nil)
	limiter, err := shared.New(redistest.Script(nil, redistest.Fail(errors.New("down"))), &shared.Options{Deadline: ms, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer limiter.Close()
	login := byIP("login", hourly)
	login.Fail = algorithms.FailClosed
	m := shownOn(t, page, limiter, ratelimit.Options{}, login)
	if v := look(t, page); !strings.Contains(v.Summary, "; Redis has been connected since the start") {
		t.Errorf("got %q before the outage", v.Summary)
	}
	sent, began := 0, time.Now()
	for ; limiter.Stats().Fallback.Open == 0; sent++ {
		record(m.Handler(ok), from("192.0.2.1"))
	}
	page.Outdate()
	v := look(t, page)
	want := fmt.Sprintf("login denied all of its %d requests because it fails closed.", sent)
	if !strings.Contains(v.Summary, want) {
		t.Errorf("got %q, want %q", v.Summary, want)
	}
	if v.Health.Class != "bad" || v.Health.Text != "Redis unavailable, and 1 other problem" {
		t.Errorf("got the badge %+v", v.Health)
	}
	if got := v.Troubles[0]; got.Text != "Redis unavailable" || got.Since.Before(began) || got.Since.After(time.Now()) {
		t.Errorf("got %+v, want that it began after %v", got, began)
	}
}

// counted is a limiter with the given Stats.
type counted struct {
	*algorithms.Memory
	stats algorithms.Stats
}

func (c *counted) Stats() algorithms.Stats { return c.stats }

// TestCircuits: the page says how many masters are unavailable, and since when it has known that.
func TestCircuits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, start := statuspage.New(nil), time.Now()
		limiter := &counted{Memory: algorithms.NewMemory(nil)}
		limiter.stats.Shared = true
		m := shownOn(t, page, limiter, ratelimit.Options{LimiterName: "cluster"}, byIP("p", hourly))
		for _, tt := range []struct {
			open  int
			trips uint64
			says  string
			since time.Duration // of the trouble, after the start
		}{
			{0, 0, "Redis of cluster has been connected since the start, 60 s ago.", 0},
			{1, 1, "Redis of cluster unavailable", 110 * time.Second},
			{2, 2, "2 masters of Redis of cluster unavailable", 170 * time.Second},
			{1, 2, "Redis of cluster unavailable", 170 * time.Second},
			{0, 2, "Redis of cluster has been connected for 10 s.", 0},
			{0, 3, "Redis of cluster has been connected for 10 s.", 0}, // it opened and closed meanwhile
		} {
			time.Sleep(50 * time.Second)
			limiter.stats.Fallback.Open, limiter.stats.Fallback.Trips = tt.open, tt.trips
			record(m.Handler(ok), from("192.0.2.1")) // no operator reads the page
			time.Sleep(10 * time.Second)
			v := look(t, page)
			if tt.open == 0 { // all decisions are made without Redis, and that is the only trouble
				v.Troubles = v.Troubles[1:]
			}
			if tt.open == 0 && !strings.HasSuffix(v.Summary, "; "+tt.says) || tt.open > 0 && (v.Health.Text != tt.says || strings.Contains(v.Summary, "Redis")) {
				t.Errorf("%d open after %d trips: got %q, want %q", tt.open, tt.trips, v.Summary, tt.says)
			}
			if (tt.open > 0) != (len(v.Troubles) == 1) || tt.open > 0 && v.Troubles[0].Since.Sub(start) != tt.since {
				t.Errorf("%d open after %d trips: got %+v, want a trouble since %v if a circuit is open", tt.open, tt.trips, v.Troubles, tt.since)
			}
		}
	})
}

// TestShadow: the badge is not green while a policy denies no client, by its configuration or by an override.
func TestShadow(t *testing.T) {
	page, table := statuspage.New(nil), overrides.NewMemory()
	live, shadow := byIP("p", hourly), byIP("p", hourly)
	shadow.Shadow = true
	m := shownOn(t, page, algorithms.NewMemory(nil), ratelimit.Options{Overrides: table}, shadow)
	for _, tt := range []struct {
		name     string
		policy   ratelimit.Policy
		everyone *ratelimit.Override
		badge    string
	}{
		{"configured", shadow, nil, "warn p is in shadow for everyone by configuration"},
		{"an override does not end it", shadow, &ratelimit.Override{}, "warn p is in shadow for everyone by configuration"},
		{"both", shadow, &ratelimit.Override{Mode: ratelimit.ModeShadow}, "warn p is in shadow for everyone by configuration"},
		{"off", shadow, &ratelimit.Override{Mode: ratelimit.ModeOff}, "warn p is off for everyone"},
		{"by override", live, &ratelimit.Override{Mode: ratelimit.ModeShadow}, "warn p is in shadow for everyone"},
		{"live", live, nil, "good Healthy"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := m.Update(tt.policy); err != nil {
				t.Fatal(err)
			}
			if err := table.Clear(t.Context(), "p", ratelimit.Everyone); err != nil {
				t.Fatal(err)
			}
			if o := tt.everyone; o != nil {
				if err := table.Set(t.Context(), "p", ratelimit.Everyone, *o); err != nil {
					t.Fatal(err)
				}
			}
			page.Outdate()
			v := look(t, page)
			if got := v.Health.Class + " " + v.Health.Text; got != tt.badge {
				t.Errorf("got the badge %q, want %q", got, tt.badge)
			}
			if n := len(v.Troubles); (n == 0) != (v.Health.Class == "good") {
				t.Errorf("got %d troubles beside the badge %+v", n, v.Health)
			}
		})
	}
}

// TestSince: the page knows since when a trouble lasts, and since when there is none, also if no operator has read it.
func TestSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, table, start := statuspage.New(nil), overrides.NewMemory(), time.Now()
		m := shownOn(t, page, algorithms.NewMemory(nil), ratelimit.Options{Overrides: table}, byIP("p", algorithms.TokenBucket(1, time.Hour)))
		send := func(n int) {
			for range n {
				record(m.Handler(ok), from("192.0.2.1"))
				time.Sleep(time.Second)
			}
		}
		send(20) // one allowed
		if err := table.Set(t.Context(), "p", ratelimit.Everyone, ratelimit.Override{Mode: ratelimit.ModeShadow}); err != nil {
			t.Fatal(err)
		}
		send(5)
		v := look(t, page)
		if v.Health.Class != "warn" || len(v.Troubles) != 2 || v.Troubles[1].Text != "p is in shadow for everyone" {
			t.Fatalf("got the badge %+v of %+v, want that it is not good", v.Health, v.Troubles)
		}
		for i, want := range []time.Duration{5 * time.Second, 20 * time.Second} {
			if since := v.Troubles[i].Since.Sub(start); since != want {
				t.Errorf("got %q since %v, want %v: the first look", v.Troubles[i].Text, since, want)
			}
		}
		if err := table.Clear(t.Context(), "p", ratelimit.Everyone); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if err := m.Update(byIP("q", hourly)); err != nil {
			t.Fatal(err)
		}
		ended := time.Now()
		send(10)
		if v = look(t, page); v.Health.Text != "Healthy" || !v.Health.Since.Equal(ended) {
			t.Errorf("got the badge %+v, want that it is good since %v", v.Health, ended)
		}
	})
}

// TestInstance: the page names its process.
func TestInstance(t *testing.T) {
	host, err := os.Hostname()
	if v := look(t, statuspage.New(nil)); err != nil || v.Instance.Name != host || v.Instance.PID != os.Getpid() {
		t.Errorf("got %+v, want %s and this process, %v", v.Instance, host, err)
	}
}

// TestClients: the page groups what one client was denied, and shows commands that no key can break.
func TestClients(t *testing.T) {
	page := statuspage.New(&statuspage.Options{Console: "curl https://ops.example/admin"})
	none := func(name string) ratelimit.Policy { return byIP(name, algorithms.Nobody()) }
	odd := ratelimit.Policy{Name: "odd", Key: keyfunc.Header("X-Tenant"), Limit: algorithms.Nobody()}
	memory := algorithms.NewMemory(nil)
	for _, p := range []ratelimit.Policy{none("a"), none("b"), odd} {
		r := from("192.0.2.1")
		r.Header.Set("X-Tenant", `'; rm -rf /tmp/x; '`)
		record(shownOn(t, page, memory, ratelimit.Options{PlainKeys: p.Name == odd.Name}, p).Handler(ok), r)
	}
	v := look(t, page)
	if len(v.Clients) != 2 || v.Clients[0].Denied != 2 || v.Clients[0].Of != 3 || len(v.Clients[0].Keys) != 2 || !strings.HasPrefix(v.Clients[0].Client, "ip=#") {
		t.Fatalf("got %+v, want one client of two policies first", v.Clients)
	}
	html := record(page, httptest.NewRequest("GET", "/", nil)).Body.String()
	for _, c := range v.Clients {
		rest, found := strings.CutPrefix(c.Who, "curl https://ops.example/admin'/who?key=")
		if !found || strings.Count(rest, "'") != 1 || !strings.Contains(html, `href="https://ops.example/admin/who?key=`+strings.TrimSuffix(rest, "'")+`"`) {
			t.Errorf("got the command %s, want one quoted query, and a link to it", c.Who)
		}
		for _, key := range c.Keys {
			want := "curl https://ops.example/admin/ban -H 'Content-Type: application/json' -d '"
			if body, found := strings.CutPrefix(key.Ban, want); !found || strings.Count(body, "'") != 1 || !strings.HasSuffix(body, "'") {
				t.Errorf("got %s, want %s and one quoted body", key.Ban, want)
			}
		}
	}
}

// TestNear: the page lists clients that leave less than a fifth of a limit, but neither constant keys nor shadow policies.
func TestNear(t *testing.T) {
	for requests, clients := range map[int]int{8: 0, 9: 1} {
		page, limit := statuspage.New(&statuspage.Options{Console: "curl https://ops.example/admin"}), algorithms.TokenBucket(10, time.Hour)
		constant, shadow := byIP("all", limit), byIP("shadow", limit)
		constant.Key, shadow.Shadow = keyfunc.Const("x"), true
		h := shownOn(t, page, algorithms.NewMemory(nil), ratelimit.Options{}, byIP("p", limit), constant, shadow).Handler(ok)
		for range requests {
			record(h, from("192.0.2.1"))
		}
		v := look(t, page)
		if len(v.Near) != clients || clients > 0 && (v.Near[0].Admitted != 1 || len(v.Near[0].Keys) != 1 || v.Near[0].Keys[0].Policy != "p" || !strings.HasPrefix(v.Near[0].Client, "ip=#")) {
			t.Errorf("after %d of 10: got %+v, want %d clients", requests, v.Near, clients)
		}
		html := record(page, httptest.NewRequest("GET", "/", nil)).Body.String()
		if shown := strings.Contains(html, "Clients near their limits") && strings.Contains(html, "What is left"); shown != (clients > 0) {
			t.Errorf("after %d of 10: shown is %t", requests, shown)
		}
	}
}

// TestCandidateClients: the page lists clients that a candidate would deny, and does not ban them.
func TestCandidateClients(t *testing.T) {
	page, p, nothing := statuspage.New(&statuspage.Options{Console: "curl https://ops.example/admin"}), byIP("p", hourly), algorithms.Nobody()
	p.Candidate = &nothing
	record(shownOn(t, page, algorithms.NewMemory(nil), ratelimit.Options{}, p).Handler(ok), from("192.0.2.1"))
	v := look(t, page)
	if len(v.Clients) != 1 || v.Clients[0].Keys[0].Policy != "p (candidate)" || v.Clients[0].Keys[0].Ban != "" {
		t.Errorf("got %+v, want the client that the candidate would deny", v.Clients)
	}
}

// TestSaysOnce: the badge's trouble is not in the list, a concurrent limit is no rate, and without Redis no policy says
// what happens if it fails.
func TestSaysOnce(t *testing.T) {
	page := statuspage.New(nil)
	m := shownOn(t, page, algorithms.NewMemory(nil), ratelimit.Options{}, byIP("p", algorithms.Nobody()), byIP("open", algorithms.Concurrent(24, 10*time.Second)))
	record(m.Handler(ok), from("192.0.2.1"))
	html := record(page, httptest.NewRequest("GET", "/", nil)).Body.String()
	for text, want := range map[string]int{"p denies most requests": 2, "24 at once": 1, "24/10s": 0, "If Redis fails": 0, "Redis": 0, `<span class="chip">memory`: 0} { // the title has the badge, too
		if got := strings.Count(html, text); got != want {
			t.Errorf("got %q %d times, want %d:\n%s", text, got, want, html)
		}
	}
}

// TestTicks: the drawings have the requests of the last minute.
func TestTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := statuspage.New(nil)
		m := shownOn(t, page, algorithms.NewMemory(nil), ratelimit.Options{}, byIP("p", algorithms.TokenBucket(3, time.Hour)), byIP("idle", hourly))
		for range 4 {
			record(m.Handler(ok), from("192.0.2.1"))
			time.Sleep(5 * time.Second)
		}
		v := look(t, page)
		if got := fmt.Sprint(v.Ticks.Requests, v.Ticks.Denied); got != "[1 1 1 1 0] [0 0 0 1 0]" {
			t.Errorf("got %s", got)
		}
		html := record(page, httptest.NewRequest("GET", "/", nil)).Body.String()
		if n := strings.Count(html, `<rect class="allowed"`); n != 4*3 { // of all requests and of two policies
			t.Errorf("got %d bars, want 12:\n%s", n, html)
		}
	})
}
