// Tests of bugs that other libraries are known for.

package tests

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// TestKnownBugs has bugs of other rate limiters.
func TestKnownBugs(t *testing.T) {
	for name, f := range map[string]func(*testing.T){
		"a limit of nothing lets nothing pass":    nothingMeansNothing,
		"one slow call delays no other":           slowCallsAreAlone,
		"the request's context reaches the store": contextReachesLimiter,
		"one error starts no count afresh":        oneErrorForgetsNothing,
		"events name configured policies only":    eventsAreBounded,
		"jitter shares no random source":          jitterIsRaceFree,
		"forged addresses share a bucket":         forgedAddresses,
		"one customer's IPv6 is one bucket":       oneIPv6Bucket,
		"no identity is no way around":            noIdentityIsLimited,
		"keys cannot be made to collide":          keysDoNotCollide,
		"policies of equal shape count apart":     policiesCountApart,
		"the body is the handler's":               bodyIsTheHandlers,
	} {
		t.Run(name, f)
	}
}

func nothingMeansNothing(t *testing.T) {
	for _, l := range []algorithms.Limit{
		algorithms.TokenBucket(0, time.Second), algorithms.FixedWindow(1, 0), algorithms.TokenBucket(1, time.Second).WithBurst(0), {},
	} {
		if _, err := ratelimit.New(newStill(t), nil, byIP("p", l)); err == nil {
			t.Errorf("got no error of %v, want it rejected at the start", l)
		}
	}
	h := newMiddleware(t, newStill(t), nil, byIP("p", algorithms.Nobody())).Handler(ok)
	if got := record(h, from("192.0.2.1")).Code; got != http.StatusForbidden {
		t.Errorf("got status %d of Nobody, want 403", got)
	}
}

func slowCallsAreAlone(t *testing.T) {
	memory, slow := newStill(t), make(chan struct{})
	limiter := limiterFunc(func(ctx context.Context, checks []algorithms.Check) error {
		if checks[0].Key == "ip=192.0.2.1" {
			<-slow
		}
		return memory.Allow(ctx, checks)
	})
	h := newMiddleware(t, limiter, nil, byIP("p", hourly)).Handler(ok)
	var wg sync.WaitGroup
	wg.Go(func() { record(h, from("192.0.2.1")) })
	for i := range 40 {
		record(h, from(fmt.Sprintf("198.51.100.%d", i))) // hangs if it has to wait
	}
	close(slow)
	wg.Wait()
}

func contextReachesLimiter(t *testing.T) {
	type key struct{}
	var got any
	limiter := limiterFunc(func(ctx context.Context, _ []algorithms.Check) error { got = ctx.Value(key{}); return errDown })
	r := from("192.0.2.1")
	r = r.WithContext(context.WithValue(r.Context(), key{}, "trace"))
	record(newMiddleware(t, limiter, &ratelimit.Options{Logger: quiet}, byIP("p", hourly)).Handler(ok), r)
	if got != "trace" {
		t.Errorf("got %v, want the request's context", got)
	}
}

func oneErrorForgetsNothing(t *testing.T) {
	memory, calls := newStill(t), 0
	limiter := limiterFunc(func(ctx context.Context, checks []algorithms.Check) error {
		if calls++; calls == 6 {
			return errDown
		}
		return memory.Allow(ctx, checks)
	})
	h := newMiddleware(t, limiter, &ratelimit.Options{Logger: quiet}, byIP("p", hourly)).Handler(ok)
	var statuses []string
	for range 13 {
		statuses = append(statuses, strconv.Itoa(record(h, from("192.0.2.1")).Code))
	}
	if got, want := strings.Join(statuses, " "), strings.Repeat("200 ", 11)+"429 429"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func eventsAreBounded(t *testing.T) {
	seen := new(eventLog)
	p := byPlan("p", hourly, map[string]algorithms.Limit{"gold": hourly})
	h := newMiddleware(t, newStill(t), &ratelimit.Options{Observers: []ratelimit.Observer{seen}}, p).Handler(ok)
	for i := range 300 {
		r := onPlan(from(fmt.Sprintf("192.0.2.%d", i%250)), "gold")
		r.Method, r.URL.Path = fmt.Sprint("M", i), fmt.Sprint("/", i)
		record(h, r)
	}
	for _, e := range seen.events {
		for _, v := range e.Verdict.Policies {
			if v.Name != "p" || v.Tier != "gold" || e.Policy != "" {
				t.Fatalf("got %+v, want p and gold alone", e)
			}
		}
	}
}

func jitterIsRaceFree(t *testing.T) {
	h := newMiddleware(t, newStill(t), nil, forAll("p", algorithms.FixedWindow(1, time.Hour))).Handler(ok)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			for range 20 {
				record(h, from(fmt.Sprintf("192.0.2.%d", i)))
			}
		})
	}
	wg.Wait()
}

// sameBucket wants all requests after the first to be denied by a limit of one.
func sameBucket(t *testing.T, key keyfunc.Key, requests ...*http.Request) {
	t.Helper()
	h := newMiddleware(t, newStill(t), nil, ratelimit.Policy{Name: "p", Key: key, Limit: algorithms.TokenBucket(1, time.Hour)}).Handler(ok)
	for i, r := range requests {
		if got, want := record(h, r).Code, 200; i == 0 && got != want || i > 0 && got != 429 {
			t.Errorf("request %d of %v %v: got status %d", i, r.RemoteAddr, r.Header, got)
		}
	}
}

func forgedAddresses(t *testing.T) {
	xff := func(peer string, lines ...string) *http.Request {
		r := from(peer)
		r.Header["X-Forwarded-For"] = lines
		return r
	}
	sameBucket(t, keyfunc.IP(nil), from("203.0.113.9"), xff("203.0.113.9", "1.1.1.1"), xff("203.0.113.9", "2.2.2.2", "3.3.3.3"))
	proxies := keyfunc.IP(&keyfunc.IPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	sameBucket(t, proxies, xff("10.0.0.1", "203.0.113.9"), xff("10.0.0.1", "1.1.1.1, 203.0.113.9"),
		xff("10.0.0.1", "2.2.2.2", "203.0.113.9"), xff("10.0.0.2", "3.3.3.3 , 203.0.113.9:4711, 10.0.0.1"), xff("203.0.113.9", "4.4.4.4"))
}

func oneIPv6Bucket(t *testing.T) {
	sameBucket(t, keyfunc.IP(nil), from("2001:db8:1:2::1"), from("2001:db8:1:2:ffff::2"), from("2001:db8:1:2:3:4:5:6%eth0"))
	sameBucket(t, keyfunc.IP(nil), from("192.0.2.1"), from("::ffff:192.0.2.1"))
	h := newMiddleware(t, newStill(t), nil, byIP("p", algorithms.TokenBucket(1, time.Hour))).Handler(ok)
	for _, ip := range []string{"::ffff:192.0.2.1", "::ffff:192.0.2.2", "2001:db8::1", "2001:db8:0:1::1"} {
		if got := record(h, from(ip)).Code; got != http.StatusOK {
			t.Errorf("%s: got status %d, want a bucket of its own", ip, got)
		}
	}
}

func noIdentityIsLimited(t *testing.T) {
	peerless := func(address string) *http.Request { r := from("192.0.2.1"); r.RemoteAddr = address; return r }
	sameBucket(t, keyfunc.IP(nil), peerless(""), peerless("@"), peerless("garbage"))
	served := new(counter)
	h := newMiddleware(t, newStill(t), nil, ratelimit.Policy{Name: "p", Key: keyfunc.Header("X-Tenant"), Limit: hourly}).Handler(served)
	record(h, from("192.0.2.1"))
	record(h, with(from("192.0.2.1"), "X-Tenant", ""))
	if got := served.n.Load(); got != 0 {
		t.Errorf("got %d served without the header, want none", got)
	}
}

func keysDoNotCollide(t *testing.T) {
	key := keyfunc.Join(keyfunc.Header("A"), keyfunc.Header("B"))
	memory := newStill(t)
	h := newMiddleware(t, memory, nil, ratelimit.Policy{Name: "p", Key: key, Limit: algorithms.TokenBucket(1, time.Hour)}).Handler(ok)
	pairs := [][2]string{{"a", "b|c"}, {"a|b", "c"}, {"a|hdr.b=b", "c"}, {"a", "hdr.b=b|c"}, {"{a}", "b"}, {"}{", "b"}, {"a:b", "c"}, {"a", "b:c"},
		{"a%7C", "b"}, {"a|", "b"}, {"*", "b"}, {"#a", "b"}, {"a\x00", "b"}, {"é", "b"}}
	for _, pair := range pairs {
		if got := record(h, with(with(from("192.0.2.1"), "A", pair[0]), "B", pair[1])).Code; got != http.StatusOK {
			t.Errorf("%q: got status %d, want a bucket of its own", pair, got)
		}
	}
	if got := memory.Stats().Memory.Keys; got != len(pairs) {
		t.Errorf("got %d keys, want %d", got, len(pairs))
	}
}

func policiesCountApart(t *testing.T) {
	memory := newStill(t)
	one, two := byIP("one", hourly), byIP("two", hourly)
	for range 7 {
		record(newMiddleware(t, memory, nil, one).Handler(ok), from("192.0.2.1"))
	}
	if got := left(t, memory, two, "ip=192.0.2.1"); got != 10 {
		t.Errorf("got %d left of the other policy, want 10", got)
	}
}

func bodyIsTheHandlers(t *testing.T) {
	p := byIP("p", hourly)
	p.Key = keyfunc.Join(keyfunc.IP(nil), keyfunc.Route())
	const form = "key=value&other=1"
	h := newMiddleware(t, newStill(t), nil, p).Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Form != nil || r.PostForm != nil {
			t.Error("got a form that is parsed already")
		}
		if body, err := io.ReadAll(r.Body); err != nil || string(body) != form {
			t.Errorf("got body %q and error %v, want all of it", body, err)
		}
	}))
	r := with(from("192.0.2.1"), "Content-Type", "application/x-www-form-urlencoded")
	r.Method, r.Body = http.MethodPost, io.NopCloser(strings.NewReader(form))
	record(h, r)
}

// TestHonestHeaders: on any path to a denial the fields are well-formed and agree, and a client that waits is admitted.
func TestHonestHeaders(t *testing.T) {
	for _, l := range []algorithms.Limit{
		algorithms.TokenBucket(7, 3*time.Second), algorithms.TokenBucket(100, time.Minute).WithBurst(5), algorithms.LeakyBucket(3, 7*time.Second),
		algorithms.SlidingWindowLog(5, 11*time.Second), algorithms.SlidingWindowCounter(9, 13*time.Second), algorithms.FixedWindow(5, 17*time.Second),
	} {
		for cost := int64(1); cost <= 3; cost++ {
			t.Run(fmt.Sprint(l, " cost ", cost), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { runHonest(t, l, cost) })
			})
		}
	}
}

func runHonest(t *testing.T, l algorithms.Limit, cost int64) {
	p := byIP("p", l)
	p.Cost = costOf(cost)
	m := newMiddleware(t, newMemory(t), &ratelimit.Options{Headers: headers.Draft | headers.SeparateFields | headers.XRateLimit}, p)
	h := m.Handler(ok)
	time.Sleep(1234567 * time.Microsecond)
	denials := 0
	for range 200 {
		if v := check(t, m, from("192.0.2.1")); v.Allowed {
			time.Sleep(37 * ms)
			continue
		}
		denials++
		w := record(h, from("192.0.2.1"))
		wait := retryAfter(t, w.Header())
		reset, err := strconv.Atoi(w.Header().Get("RateLimit-Reset"))
		if w.Code != http.StatusTooManyRequests || err != nil || reset != wait {
			t.Fatalf("got status %d and\n%swant RateLimit-Reset and Retry-After the same", w.Code, limits(w.Header()))
		}
		epoch, err := strconv.ParseInt(w.Header().Get("X-RateLimit-Reset"), 10, 64)
		if until := time.Until(time.Unix(epoch, 0)); err != nil || until < time.Duration(wait)*time.Second || until >= time.Duration(wait+1)*time.Second {
			t.Fatalf("got X-RateLimit-Reset %v from now, want %d s, rounded up", until, wait)
		}
		for name, lines := range w.Header() {
			if remaining, err := strconv.Atoi(lines[0]); len(lines) != 1 || strings.HasSuffix(name, "-Remaining") && (err != nil || remaining < 0) {
				t.Fatalf("got %s: %q, want one line, and nothing negative", name, lines)
			}
		}
		time.Sleep(time.Duration(wait) * time.Second)
		if w := record(h, from("192.0.2.1")); w.Code != http.StatusOK || w.Header().Get("Retry-After") != "" {
			t.Fatalf("got status %d and\n%safter the wait, want it admitted", w.Code, limits(w.Header()))
		}
	}
	if denials < 5 {
		t.Errorf("got %d denials, want enough of them to mean something", denials)
	}
}
