// Tests of shares: tenants beside one that asks for much more than its share.

package tests

import (
	"context"
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
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
)

type tenantContext struct{}

// byTenant is the identity of the request's context.
var byTenant = keyfunc.User(func(ctx context.Context) (keyfunc.Identity, bool) {
	id, ok := ctx.Value(tenantContext{}).(keyfunc.Identity)
	return id, ok
})

// of returns a request of a tenant.
func of(id, tier string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	return r.WithContext(context.WithValue(r.Context(), tenantContext{}, keyfunc.Identity{ID: id, Tier: tier}))
}

// capacity is shared by tenants: 100/s.
func capacity() ratelimit.Policy {
	return ratelimit.Policy{
		Name: "capacity", Key: keyfunc.Const("all"), Capacity: true, Limit: algorithms.TokenBucket(100, time.Second),
		ShareBy: byTenant, Weights: map[string]int64{"two": 2, "five": 5},
	}
}

// A tenantLoad is what each tenant asks for and is given, in requests.
type tenantLoad struct {
	rates      []int // per second
	tiers      []string
	asked, got []int
	all        int
	admitted   []time.Duration // of each admitted request, since the begin
}

// run asks for a time, after a second in which nothing is counted. Each tenant asks one of the instances.
func (l *tenantLoad) run(t *testing.T, length time.Duration, instances ...*ratelimit.Middleware) {
	t.Helper()
	rnd, total := rand.New(rand.NewPCG(1, 2)), 0
	for _, rate := range l.rates {
		total += rate
	}
	l.asked, l.got = make([]int, len(l.rates)), make([]int, len(l.rates))
	begin := time.Now()
	for time.Since(begin) < length+time.Second {
		time.Sleep(time.Duration(rnd.ExpFloat64() * float64(time.Second) / float64(total)))
		n, tenant := rnd.IntN(total), 0
		for n >= l.rates[tenant] {
			n -= l.rates[tenant]
			tenant++
		}
		tier := ""
		if l.tiers != nil {
			tier = l.tiers[tenant]
		}
		v, err := instances[tenant%len(instances)].Check(of(strconv.Itoa(tenant), tier))
		if err != nil {
			t.Fatal(err)
		}
		if time.Since(begin) < time.Second {
			continue
		}
		if l.asked[tenant]++; v.Allowed {
			l.got[tenant]++
			l.all++
			l.admitted = append(l.admitted, time.Since(begin))
		}
	}
}

// busiest returns the most requests that were admitted in any interval of a length.
func (l *tenantLoad) busiest(length time.Duration) (most int) {
	first := 0
	for i, at := range l.admitted {
		for at-l.admitted[first] >= length {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// judge reports whether the limit of capacity is used to 97 % in all, and in any minute to at most 103 %.
func (l *tenantLoad) judge(t *testing.T, length time.Duration) {
	t.Helper()
	if most, least := l.busiest(time.Minute), int(97*length/time.Second); most > 6_180 || l.all < least {
		t.Errorf("got %d in all and %d in a minute, want at least %d, and at most 6180 in a minute", l.all, most, least)
	}
}

// jain returns the fairness of what tenants have by weight: 1 if all have the same.
func jain(got []int, weights ...int) float64 {
	sum, squares := 0.0, 0.0
	for i, n := range got {
		x := float64(n) / float64(weights[i%len(weights)])
		sum, squares = sum+x, squares+x*x
	}
	return sum * sum / (float64(len(got)) * squares)
}

func rates(n, each int, others ...int) (all []int) {
	for range n {
		all = append(all, each)
	}
	return append(all, others...)
}

// TestSharesBesideAHog: nine tenants within their shares pass, and nine above them have their tenths.
func TestSharesBesideAHog(t *testing.T) {
	t.Run("5 beside 1000", func(t *testing.T) { besideAHog(t, 5, 1_000, 90*time.Second) })
	t.Run("20 beside 1000", func(t *testing.T) { besideAHog(t, 20, 1_000, 90*time.Second) })
}

// TestSharesBesideAFastHog: a hog that sends fifty times the limit takes no more from nine tenants.
func TestSharesBesideAFastHog(t *testing.T) {
	longtest.Skip(t)
	besideAHog(t, 5, 5_000, time.Minute)
}

// besideAHog checks what nine tenants have, each of which sends 5 requests a second, half of its tenth, or 20.
func besideAHog(t *testing.T, each, hog int, length time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		l := tenantLoad{rates: rates(9, each, hog)}
		l.run(t, length, newMiddleware(t, newMemory(t), nil, capacity()))
		asked, got := 0, 0
		for i := range 9 {
			asked, got = asked+l.asked[i], got+l.got[i]
			if each == 20 && float64(l.got[i]) < 0.95*900 {
				t.Errorf("tenant %d: got %d, want 900", i, l.got[i])
			}
		}
		if each == 5 && float64(got) < 0.995*float64(asked) {
			t.Errorf("the nine: got %d of %d", got, asked)
		}
		l.judge(t, length)
		if j := jain(l.got, 1); each == 20 && j < 0.99 {
			t.Errorf("got Jain's index %v", j)
		}
		t.Logf("the nine %d of %d, all %d, %d in a minute, Jain's index %.4f", got, asked, l.all, l.busiest(time.Minute), jain(l.got, 1))
	})
}

// TestWeightsOfShares: backlogged tenants have the limit by their weights.
func TestWeightsOfShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := tenantLoad{rates: rates(6, 200), tiers: []string{"", "two", "five", "", "two", "five"}}
		l.run(t, time.Minute, newMiddleware(t, newMemory(t), nil, capacity()))
		if j := jain(l.got, 1, 2, 5); j < 0.99 {
			t.Errorf("got %v, Jain's index %v", l.got, j)
		}
		l.judge(t, time.Minute)
	})
}

// TestUnusedSharesAreBorrowed: of 1 000 known tenants, ten divide the limit, and one alone has all of it.
func TestUnusedSharesAreBorrowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMiddleware(t, newMemory(t), nil, capacity())
		for i := range 1_000 {
			if _, err := m.Check(of("known"+strconv.Itoa(i), "")); err != nil {
				t.Fatal(err)
			}
		}
		if n, sum := m.Inside().Tenants("capacity"); n != 1_000 || sum != 1_000 {
			t.Errorf("got %d tenants of weight %d, want 1000", n, sum)
		}
		time.Sleep(time.Minute)
		l := tenantLoad{rates: rates(9, 5, 1_000)}
		l.run(t, time.Minute, m)
		if n, _ := m.Inside().Tenants("capacity"); n != 10 {
			t.Errorf("got %d tenants, want 10", n)
		}
		asked := 0
		for _, n := range l.asked[:9] {
			asked += n
		}
		if nine := l.all - l.got[9]; nine*1_000 < asked*995 {
			t.Errorf("got %v of %v", l.got, l.asked)
		}
		l.judge(t, time.Minute)
		time.Sleep(time.Minute)
		alone := tenantLoad{rates: rates(0, 0, 1_000)}
		alone.run(t, time.Minute, m)
		alone.judge(t, time.Minute)
	})
}

// TestSharesOfLargeCosts: a request that costs more than the share's burst has its part in the long run.
func TestSharesOfLargeCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := capacity()
		p.Cost = costOf(50)
		l := tenantLoad{rates: rates(9, 5, 300)}
		l.run(t, 5*time.Minute, newMiddleware(t, newMemory(t), nil, p))
		if j := jain(l.got, 1); j < 0.95 || l.all*50 > 30_900 {
			t.Errorf("got %v, Jain's index %v", l.got, j)
		}
	})
}

// TestVerdictsOfShares: who borrows, and who is denied beyond its share.
func TestVerdictsOfShares(t *testing.T) {
	p := capacity()
	p.Limit = algorithms.TokenBucket(4, time.Minute)
	m := newMiddleware(t, newStill(t), &ratelimit.Options{PlainKeys: true}, p)
	h := m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	outcome := func(id string) string {
		v, err := m.Check(of(id, ""))
		if err != nil {
			t.Fatal(err)
		}
		return v.Policies[0].Outcome.String()
	}
	if got := outcome("quiet"); got != "allowed" {
		t.Errorf("got %q", got)
	}
	for i, want := range []string{"allowed", "allowed", "borrowed"} {
		if got := outcome("hog"); got != want {
			t.Errorf("%d: got %q, want %q", i, got, want)
		}
	}
	w := record(h, of("hog", ""))
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "temporary-reduced-capacity") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if got := w.Header().Get("Retry-After"); got != "15" { // then a unit of the burst is there, and only later one of its share
		t.Errorf("got Retry-After %q, want 15", got)
	}
	if got := outcome("hog"); got != "denied" {
		t.Errorf("got %q, want it denied", got)
	}
	if got := outcome("quiet"); got != "allowed" {
		t.Errorf("in the reserve: got %q", got)
	}
	top := m.TopDenied("capacity", 2)
	if len(top) != 1 || top[0].Plain != "usr=hog" || top[0].Denied != 2 {
		t.Errorf("got %+v, want the tenant", top)
	}
}

// TestSharesInShadow: the shadow denies nobody, and tells who would borrow and be denied.
func TestSharesInShadow(t *testing.T) {
	p := capacity()
	p.Limit, p.Shadow = algorithms.TokenBucket(4, time.Minute), true
	m := newMiddleware(t, newStill(t), nil, p)
	var got []string
	for _, id := range []string{"quiet", "hog", "hog", "hog", "hog", "quiet"} {
		v, err := m.Check(of(id, ""))
		if err != nil || !v.Allowed {
			t.Fatalf("got %+v, error %v", v, err)
		}
		got = append(got, v.Policies[0].Outcome.String())
	}
	if want := "allowed allowed allowed borrowed shadow_denied allowed"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestUnitsComeBackToTheShare: under ChargeIf, both the tenant's share and the limit have their units again.
func TestUnitsComeBackToTheShare(t *testing.T) {
	p, l := capacity(), newStill(t)
	p.Limit, p.ChargeIf = algorithms.TokenBucket(4, time.Minute), func(int) bool { return false }
	m := newMiddleware(t, l, nil, p)
	h := m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for range 20 {
		if w := record(h, of("a", "")); w.Code != http.StatusOK {
			t.Fatalf("got %d", w.Code)
		}
	}
	checks := []algorithms.Check{
		{Policy: "capacity", Key: "const=all", Limit: p.Limit},
		{Policy: "capacity~share", Key: "usr=a", Limit: p.Limit},
	}
	if err := l.Allow(t.Context(), checks); err != nil || checks[0].Decision.Remaining != 4 || checks[1].Decision.Remaining != 4 {
		t.Errorf("got %+v, error %v, want all units", checks, err)
	}
}

// TestOverridesOfTenants: an override bans one tenant, or lets it pass; the others keep the limit.
func TestOverridesOfTenants(t *testing.T) {
	table := overrides.NewMemory()
	for id, mode := range map[string]ratelimit.Mode{"usr=bad": ratelimit.ModeBanned, "usr=good": ratelimit.ModeOff} {
		if err := table.Set(t.Context(), "capacity", id, ratelimit.Override{Mode: mode}); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.Set(t.Context(), "capacity", "const=all", ratelimit.Override{Limit: algorithms.TokenBucket(2, time.Hour)}); err != nil {
		t.Fatal(err)
	}
	m := newMiddleware(t, newStill(t), &ratelimit.Options{Overrides: table}, capacity())
	for range 3 {
		for id, want := range map[string]bool{"bad": false, "good": true} {
			if v, err := m.Check(of(id, "")); err != nil || v.Allowed != want {
				t.Errorf("%s: got %v, error %v, want %v", id, v.Allowed, err, want)
			}
		}
	}
	served := 0
	for range 10 {
		if v, _ := m.Check(of("other", "")); v.Allowed {
			served++
		}
	}
	if served != 2 {
		t.Errorf("got %d served, want the limit of the override", served)
	}
	if err := table.Set(t.Context(), "capacity", "const=all", ratelimit.Override{Limit: algorithms.SlidingWindowLog(2, time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if v, err := m.Check(of("other", "")); err != nil || v.Policies[0].Limit != capacity().Limit {
		t.Errorf("got %v, error %v: want the policy's limit, because tenants cannot share the override's", v.Policies, err)
	}
}
