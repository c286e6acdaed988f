package replay

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// TestProposal: where the need of well-behaved clients is known, the proposal is that and the headroom, whatever the
// algorithm and its present limit, and however much the others send.
func TestProposal(t *testing.T) {
	t.Parallel()
	const need = 20
	right := map[string]float64{
		"token-bucket 5/1m": need, "token-bucket 500/1m": need, "leaky-bucket 60/1m": need, "sliding-window-counter 60/1m": need,
		"sliding-window-log 60/1m": need, "fixed-window 60/1m": need, "token-bucket 60/1m burst 10": 6 * need, "token-bucket 60/1m burst 120": need / 2,
		"calendar-window 100/day": 4 * need,
	}
	var policies []ratelimit.Policy
	limits := make(map[string]string)
	for limit := range right {
		name := fmt.Sprintf("p%d", len(policies))
		limits[name] = limit
		policies = append(policies, ratelimit.Policy{Name: name, Limit: parsed(t, limit), Shadow: true})
	}
	service := func(l algorithms.Limiter) (http.Handler, error) {
		return ratelimit.Must(ratelimit.New(l, nil, policies...)).Handler(served), nil
	}
	r := reportOf(t, service, text(behaved(100, need)), Options{})
	if len(r.Policies) != len(right) || r.Requests != 100*4*need+7_200 {
		t.Fatalf("got %d policies and %d requests, want %d and all", len(r.Policies), r.Requests, len(right))
	}
	for _, p := range r.Policies {
		limit := limits[p.Policy]
		if p.Proposal == nil {
			if !strings.Contains(limit, "day") || !strings.Contains(p.Note, "too short") {
				t.Errorf("%s: got no proposal: %s", limit, p.Note)
			}
			continue
		}
		proposed, err := algorithms.ParseLimit(p.Proposal.Limit)
		want := right[limit] * (1 + r.Goals.Headroom)
		if off := math.Abs(float64(proposed.Requests())/want - 1); err != nil || off > 0.1 {
			t.Errorf("%s: got %s, want %.0f requests: %.0f %% off", limit, p.Proposal.Limit, want, 100*off)
		}
		if p.Proposal.Share > r.Goals.Clients || !strings.Contains(p.Proposal.Code, "algorithms.") {
			t.Errorf("%s: got %+v, want at most %v of clients denied", limit, p.Proposal, r.Goals.Clients)
		}
	}
}

// TestSmallest: the limits that the search finds deny no more than the goals, and the next smaller ones do.
func TestSmallest(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	var requests []sent
	for range 3_000 {
		client := int(30 * random.Float64() * random.Float64())
		requests = append(requests, sent{time.Duration(random.Int64N(int64(time.Hour))), client})
	}
	log := text(requests)
	replay := func(limit string) policyReport {
		return reportOf(t, limited(t, limit), log, Options{DenyClients: 10}).Policies[0]
	}
	for _, limit := range []string{"token-bucket 60/1m burst 10", "sliding-window-counter 60/1m", "fixed-window 60/1m"} {
		family, err := algorithms.ParseLimit(limit)
		if err != nil {
			t.Fatal(err)
		}
		const under = 0.1
		found := parsed(t, replay(limit).Smallest)
		smaller, ok := limitOf(family, min(found.Requests()-1, found.Requests()*98/100))
		if !ok {
			t.Fatalf("there is no limit below %s", found)
		}
		share := func(l algorithms.Limit) float64 {
			r := replay(l.String()).Results[0]
			return float64(r.Clients) / float64(r.Keys)
		}
		if at, below := share(found), share(smaller); at > under || below <= under {
			t.Errorf("%s: %s denies %.4f of clients, and %s denies %.4f; want %.2f between", limit, found, at, smaller, below, under)
		}
	}
}

// TestCurve: what the report says about limits is what a replay under each of them finds.
func TestCurve(t *testing.T) {
	t.Parallel()
	requests := behaved(200, 30)
	log, seconds, busiest := text(requests), make(map[time.Duration]int64), int64(0)
	for _, r := range requests {
		seconds[r.at/time.Second]++
		busiest = max(busiest, seconds[r.at/time.Second])
	}
	replay := func(limit string) policyReport { return reportOf(t, limited(t, limit), log, Options{}).Policies[0] }
	p := replay("token-bucket 20/1m")
	if len(p.Curve) < points || p.Curve[len(p.Curve)-1].Denied > 0 || p.Proposal == nil || len(p.Proposal.MostDenied) == 0 {
		t.Fatalf("got the curve %+v and the proposal %+v, want six limits, and at last one that denies nobody", p.Curve, p.Proposal)
	}
	if got := p.Curve[len(p.Curve)-1].Busiest; got != busiest {
		t.Errorf("got %d requests in the busiest second of a limit that denies nobody, want %d", got, busiest)
	}
	for _, of := range append(p.Curve, p.Proposal.point) {
		got := replay(of.Limit).Results[0]
		if got.Denied != of.Denied || got.Clients != of.Clients || of.Busiest < 1 || of.Busiest > busiest {
			t.Errorf("%s: got %+v, and %+v alone", of.Limit, of, got)
		}
	}
}

// TestSmallestOfLargeNumbers: most large rates are not exact, and some algorithms count few units. The smallest limit
// is found all the same.
func TestSmallestOfLargeNumbers(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for minute := range 2 { // in two neighbouring minutes
		fmt.Fprintf(&log, `{"time":"2026-01-01T00:%02d:00Z","address":"192.0.2.1","method":"GET","path":"/a","status":200}`+"\n", 29+minute)
	}
	for limit, tt := range map[string]struct{ cost, want int64 }{
		"sliding-window-log 100/1m": {6_000, 6_000}, "token-bucket 86400/24h": {60_013, 120_026}, "fixed-window 100/1m": {6_000, 6_000},
		"token-bucket 86400/24h burst 864000": {600_011, 120_002}, "token-bucket 1/1m burst 1000": {100, 1},
	} {
		service := one("/a", ratelimit.Policy{Limit: parsed(t, limit), Cost: func(*http.Request) int64 { return tt.cost }})
		p := reportOf(t, service, log.String(), Options{}).Policies[0]
		if off := float64(parsed(t, p.Smallest).Requests()) / float64(tt.want); off < 1 || off > 1.011 {
			t.Errorf("%s: got %q, want %d at most 1 %% above", limit, p.Smallest, tt.want)
		}
	}
}

// TestFamily: a burst keeps its proportion, and shares are counts, whatever their fractions.
func TestFamily(t *testing.T) {
	t.Parallel()
	for n := range int64(1_000) {
		if l, _ := limitOf(algorithms.TokenBucket(100, time.Minute), n+1); l.Burst() != n+1 {
			t.Errorf("the burst of %d is %d", n+1, l.Burst())
		}
	}
	s, keys := &series{limit: algorithms.TokenBucket(1, time.Second)}, make([]*key, 100)
	for i := range keys {
		keys[i] = new(key)
	}
	for allowed := range 100 {
		if f := bound(s, keys, float64(allowed)/100); f.allowed != int64(allowed) {
			t.Errorf("%d %% of 100 are %d", allowed, f.allowed)
		}
	}
}

// TestSettledCosts: trials reserve and settle as the engine does, whether a request costs more or less than was reserved.
func TestSettledCosts(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, most := range []int{8, 15, 300} { // returned, both, charged
		var log strings.Builder
		for i := range 600 {
			fmt.Fprintf(&log, `{"time":%q,"address":"192.0.2.%d","method":"GET","path":"/a","status":200,"cost":%d}`+"\n",
				begin.Add(time.Duration(i)*time.Second).Format(time.RFC3339), random.IntN(20), random.IntN(most))
		}
		replay := func(limit string) policyReport {
			service := one("/a", ratelimit.Policy{Limit: parsed(t, limit), Cost: func(*http.Request) int64 { return 8 }})
			return reportOf(t, service, log.String(), Options{DenyClients: 10}).Policies[0]
		}
		for _, limit := range []string{"token-bucket 30/1m", "fixed-window 60/1m", "sliding-window-counter 30/1m"} {
			p := replay(limit)
			for _, beside := range p.Curve {
				if got := replay(beside.Limit).Results[0]; got.Denied != beside.Denied {
					t.Errorf("%s, costs below %d: got %+v beside, and %+v alone", limit, most, beside, got)
				}
			}
			if got := replay(p.Smallest).Results[0]; float64(got.Clients) > 0.1*float64(got.Keys) {
				t.Errorf("%s, costs below %d: %s denies %+v", limit, most, p.Smallest, got)
			}
		}
	}
}
