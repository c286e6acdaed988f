// Tests of policies that stand behind others: credits behind a plan.

package tests

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// planAndCredits are a plan of 60 per minute with the burst 2, and 3 credits a day behind it.
func planAndCredits() []ratelimit.Policy {
	return []ratelimit.Policy{
		{Name: "credits", Key: byTenant, Limit: algorithms.PerDay(3, nil), After: "plan"},
		{Name: "plan", Key: byTenant, Limit: algorithms.TokenBucket(60, time.Minute).WithBurst(2)},
	}
}

// TestCreditsAfterThePlan: one is charged, headers describe it, and a denial speaks of that which fits first.
func TestCreditsAfterThePlan(t *testing.T) {
	l := newStill(t)
	m := newMiddleware(t, l, nil, planAndCredits()...)
	var outcomes []string
	h := m.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		v, _ := ratelimit.FromContext(r.Context())
		plan, _ := v.Policy("plan")
		credits, _ := v.Policy("credits")
		outcomes = append(outcomes, plan.Outcome.String()+"+"+credits.Outcome.String())
	}))
	var fields []string
	for range 5 {
		w := record(h, of("a", ""))
		fields = append(fields, w.Header().Get("RateLimit-Policy")+" "+w.Header().Get("RateLimit"))
		if w.Code != http.StatusOK {
			t.Fatalf("got %d", w.Code)
		}
	}
	want := "allowed+spared allowed+spared spared+allowed spared+allowed spared+allowed"
	if got := strings.Join(outcomes, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for i, field := range fields {
		if plan := i < 2; strings.Contains(field, `"plan"`) != plan || strings.Contains(field, `"credits"`) == plan {
			t.Errorf("%d: got %s", i, field)
		}
	}
	w := record(h, of("a", ""))
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Header().Get("RateLimit"), `"plan"`) ||
		strings.Contains(w.Body.String(), "credits") {
		t.Errorf("got %d %v %s, want a denial by the plan, which fits in 1 s", w.Code, w.Header(), w.Body)
	}
}

// TestDenialByCreditsThatFitFirst: if credits come back before the plan does, the denial speaks of credits.
func TestDenialByCreditsThatFitFirst(t *testing.T) {
	policies := planAndCredits()
	policies[0].Limit, policies[1].Limit = algorithms.TokenBucket(60, time.Minute).WithBurst(1), algorithms.PerDay(1, nil)
	h := newMiddleware(t, newStill(t), nil, policies...).Handler(ok)
	for range 2 {
		record(h, of("a", ""))
	}
	w := record(h, of("a", ""))
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), "credits") ||
		strings.Contains(w.Body.String(), "plan") {
		t.Errorf("got %d %v %s, want a denial by credits, which fit in 1 s", w.Code, w.Header(), w.Body)
	}
}

// TestPairsChargeOne: in random histories, a request charges the plan if it fits, else credits, else nothing. What is returned
// goes back to where it was charged.
func TestPairsChargeOne(t *testing.T) {
	histories := uint64(2_000)
	if testing.Short() {
		histories = 200
	}
	for seed := range histories {
		chargeOne(t, seed)
	}
}

// TestManyPairsChargeOne is TestPairsChargeOne for 100 000 histories.
func TestManyPairsChargeOne(t *testing.T) {
	longtest.Skip(t)
	for part := range uint64(10) {
		t.Run(strconv.FormatUint(part, 10), func(t *testing.T) {
			t.Parallel()
			for seed := part * 10_000; seed < (part+1)*10_000; seed++ {
				chargeOne(t, seed)
			}
		})
	}
}

// chargeOne compares a random history with what the plan and credits must have.
func chargeOne(t *testing.T, seed uint64) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 55))
	clock := newHandClock(noon)
	l := newMemoryWith(t, algorithms.MemoryOptions{Now: clock.now})
	plan, credits, cost, refund := rnd.Int64N(20)+1, rnd.Int64N(20)+1, int64(1), false
	policies := planAndCredits()
	policies[1].Limit, policies[0].Limit = algorithms.PerDay(plan, nil), algorithms.PerDay(credits, nil)
	for i := range policies {
		policies[i].Cost = func(*http.Request) int64 { return cost }
		policies[i].ChargeIf = func(int) bool { return !refund }
	}
	m := newMiddleware(t, l, &ratelimit.Options{Logger: quiet}, policies...)
	passed, request := false, of("a", "")
	h := m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed = true }))
	for range 50 {
		cost, refund, passed = rnd.Int64N(6)+1, rnd.IntN(3) == 0, false
		want := cost <= plan || cost <= credits
		h.ServeHTTP(httptest.NewRecorder(), request)
		if passed != want {
			t.Fatalf("seed %d: got %v, want %v, for %d of %d and %d", seed, passed, want, cost, plan, credits)
		}
		switch {
		case refund:
		case cost <= plan:
			plan -= cost
		case cost <= credits:
			credits -= cost
		}
		checks := []algorithms.Check{
			{Policy: "plan", Key: "usr=a", Limit: policies[1].Limit}, {Policy: "credits", Key: "usr=a", Limit: policies[0].Limit},
		}
		if err := l.Allow(t.Context(), checks); err != nil || checks[0].Decision.Remaining != plan || checks[1].Decision.Remaining != credits {
			t.Fatalf("seed %d: got %+v, want %d and %d", seed, checks, plan, credits)
		}
	}
}

// TestSettlesWhatWasCharged: the unused rest of a reservation goes back to credits, and what exceeds it is charged there.
func TestSettlesWhatWasCharged(t *testing.T) { synctest.Test(t, testSettlesWhatWasCharged) }

func testSettlesWhatWasCharged(t *testing.T) {
	l, policies := newMemory(t), planAndCredits()
	policies[0].Limit = algorithms.PerDay(100, nil)
	for i := range policies {
		policies[i].Cost = costOf(10)
	}
	m := newMiddleware(t, l, nil, policies...)
	for _, tt := range []struct{ total, left int64 }{{4, 96}, {13, 83}} {
		h := m.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if err := ratelimit.Settle(r.Context(), tt.total); err != nil {
				t.Error(err)
			}
		}))
		record(h, of("a", ""))
		synctest.Wait()
		if got := left(t, l, policies[0], "usr=a"); got != tt.left {
			t.Errorf("got %d credits, want %d", got, tt.left)
		}
		if got := left(t, l, policies[1], "usr=a"); got != 2 {
			t.Errorf("got %d of the plan, want 2", got)
		}
	}
}

// TestOverridesOfPairs: a policy that an override turns off, or makes a shadow, charges no other policy.
func TestOverridesOfPairs(t *testing.T) {
	for name, tt := range map[string]struct {
		policy string
		mode   ratelimit.Mode
		want   string // of the plan and credits, of six requests
	}{
		"the plan is off":         {"plan", ratelimit.ModeOff, "      "},
		"the plan is a shadow":    {"plan", ratelimit.ModeShadow, "allowed allowed shadow_denied shadow_denied shadow_denied shadow_denied"},
		"credits are off":         {"credits", ratelimit.ModeOff, "allowed allowed denied denied denied denied"},
		"credits are a shadow":    {"credits", ratelimit.ModeShadow, "allowed allowed shadow_denied shadow_denied shadow_denied shadow_denied"},
		"credits ban the account": {"credits", ratelimit.ModeBanned, "banned banned banned banned banned banned"},
	} {
		t.Run(name, func(t *testing.T) {
			table := overrides.NewMemory()
			if err := table.Set(t.Context(), tt.policy, "usr=a", ratelimit.Override{Mode: tt.mode}); err != nil {
				t.Fatal(err)
			}
			m := newMiddleware(t, newStill(t), &ratelimit.Options{Overrides: table}, planAndCredits()...)
			var got []string
			for range 6 {
				v, err := m.Check(of("a", ""))
				if err != nil {
					t.Fatal(err)
				}
				words := ""
				for _, p := range v.Policies {
					words += p.Outcome.String()
				}
				got = append(got, words)
			}
			if strings.TrimSpace(strings.Join(got, " ")) != strings.TrimSpace(tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
