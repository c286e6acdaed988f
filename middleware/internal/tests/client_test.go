// Tests of the counted client: its address, and identities that are looked up.

package tests

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// TestClientAddress: a policy without a Key counts the address as ClientIP finds it; a keyfunc.IP of one's own keeps its
// prefix, and a Peer counts the peer.
func TestClientAddress(t *testing.T) {
	const peer, client4, client6 = "10.0.0.1", "192.0.2.1", "2001:db8:1:2:3::4"
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	ip := func(o keyfunc.IPOptions) keyfunc.Key { return keyfunc.IP(&o) }
	trusting, wide := ip(keyfunc.IPOptions{Trusted: proxies}), ip(keyfunc.IPOptions{Trusted: proxies, IPv6Bits: 48})
	for _, tt := range []struct {
		name             string
		clientIP, key    keyfunc.Key
		forwarded, asked string
	}{
		{"Without ClientIP, the zero Key is the peer.", keyfunc.Key{}, keyfunc.Key{}, client4, "p:ip=10.0.0.1"},
		{"The zero Key is what ClientIP finds.", trusting, keyfunc.Key{}, client4, "p:ip=192.0.2.1"},
		{"The zero Key is cut as ClientIP cuts.", wide, keyfunc.Key{}, client6, "p:ip=2001:db8:1::/48"},
		{"The zero Key is cut to 64 bits otherwise.", trusting, keyfunc.Key{}, client6, "p:ip=2001:db8:1:2::/64"},
		{"An IP without settings finds what ClientIP finds.", trusting, keyfunc.IP(nil), client4, "p:ip=192.0.2.1"},
		{"An IP without settings keeps its 64 bits.", wide, keyfunc.IP(nil), client6, "p:ip=2001:db8:1:2::/64"},
		{"An IP keeps its own prefix.", wide, ip(keyfunc.IPOptions{IPv6Bits: 56}), client6, "p:ip=2001:db8:1::/56"},
		{"An IP in a Join keeps its own prefix.", wide, keyfunc.Join(ip(keyfunc.IPOptions{IPv6Bits: 32}), keyfunc.Const("x")), client6, "p:ip=2001:db8::/32|const=x"},
		{"An IP with proxies finds its own address.", keyfunc.Peer(), trusting, client4, "p:ip=192.0.2.1"},
		{"A Peer ignores ClientIP.", trusting, keyfunc.Peer(), client4, "p:ip=10.0.0.1"},
		{"ClientIP may be a Peer.", keyfunc.Peer(), keyfunc.Key{}, client4, "p:ip=10.0.0.1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := &spy{Limiter: newStill(t)}
			p := ratelimit.Policy{Name: "p", Key: tt.key, Limit: hourly}
			m := newMiddleware(t, l, &ratelimit.Options{ClientIP: tt.clientIP}, p)
			r := with(from(peer), "X-Forwarded-For", tt.forwarded)
			_, _ = m.Check(r)
			if got := l.asked(); got != tt.asked {
				t.Errorf("got %q, want %q", got, tt.asked)
			}
			key, _, err := m.Policies()[0].Key.Append(nil, &keyfunc.Request{Request: r, ClientIP: tt.clientIP})
			if err != nil || "p:"+string(key) != tt.asked {
				t.Errorf("got %q and %v of the policy's Key, want the text that is counted", key, err)
			}
			if err := m.Update(p); err != nil {
				t.Fatal(err)
			}
			_, _ = m.Check(r)
			if got := l.asked(); got != tt.asked {
				t.Errorf("got %q after an Update, want %q", got, tt.asked)
			}
		})
	}
}

// TestZeroKeyIsExamined: a policy without a Key counts all clients of an untrusted proxy as one, which is a finding.
func TestZeroKeyIsExamined(t *testing.T) {
	for want, o := range map[string]*ratelimit.Options{"PS101 p": {Logger: quiet}, "": {Logger: quiet, ClientIP: keyfunc.Peer()}} {
		m := newMiddleware(t, newMemory(t), o, ratelimit.Policy{Name: "p", Limit: plenty})
		for range 20 {
			record(m.Handler(ok), with(from("10.0.0.1"), "X-Forwarded-For", "192.0.2.1"))
		}
		wantFindings(t, m, "after forwarded requests", want)
	}
}

// A directory answers look-ups with one error, and counts them.
type directory struct {
	n   atomic.Int64
	err func(context.Context) error
}

func (d *directory) key() keyfunc.Key {
	return keyfunc.APIKey("X-API-Key", func(ctx context.Context, key string) (keyfunc.Identity, error) {
		d.n.Add(1)
		return keyfunc.Identity{ID: "of-" + key}, d.err(ctx)
	})
}

// TestLookupFails: the answer is 503, one line is logged, nothing is charged, and Fail does not apply.
func TestLookupFails(t *testing.T) {
	for _, fail := range []algorithms.FailureMode{algorithms.FailLocal, algorithms.FailOpen, algorithms.FailClosed} {
		t.Run(fail.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log logRecords
				d, l, seen := &directory{err: func(context.Context) error { return errOurs }}, &spy{Limiter: newStill(t)}, new(eventLog)
				m := newMiddleware(t, l, &ratelimit.Options{Logger: log.logger(), Observers: []ratelimit.Observer{seen}},
					byIP("first", hourly), ratelimit.Policy{Name: "api", Key: d.key(), Limit: hourly, Fail: fail})
				for range 3 {
					w := record(m.Handler(ok), presenting("192.0.2.1", "key"))
					checkUnavailable(t, w.Header(), w.Body.String())
					if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "hunter2") {
						t.Errorf("got %s, want 503 without the error", answerOf(w))
					}
				}
				v, err := m.Check(presenting("192.0.2.1", "key"))
				if v.Status != 503 || !errors.Is(err, errOurs) || len(v.Policies) != 0 || v.RetryAfter != 0 {
					t.Errorf("got %+v and %v, want 503 and the look-up's error", v, err)
				}
				if got := log.lines(); len(got) != 1 || !strings.Contains(got[0], "lookup") {
					t.Errorf("got %q, want one line", got)
				}
				if got := l.asked(); got != "" {
					t.Errorf("got %q asked, want nothing", got)
				}
				if e := seen.of(ratelimit.Decided)[0]; e.Policy != "api" || !errors.Is(e.Err, errOurs) {
					t.Errorf("got event %+v, want the policy and the error", e)
				}
			})
		})
	}
}

// TestLookupOfCancelled: a client that hangs up during the look-up is no trouble of the service; a look-up's own
// deadline is.
func TestLookupOfCancelled(t *testing.T) {
	for name, want := range map[string]int{"The client has hung up.": 0, "The look-up has a deadline of its own.": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log logRecords
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				d := &directory{err: func(ctx context.Context) error {
					if want == 0 {
						cancel()
						return ctx.Err()
					}
					return context.DeadlineExceeded
				}}
				l := &spy{Limiter: newStill(t)}
				m := newMiddleware(t, l, &ratelimit.Options{Logger: log.logger()}, ratelimit.Policy{Name: "api", Key: d.key(), Limit: hourly})
				served := new(counter)
				w := record(m.Handler(served), presenting("192.0.2.1", "key").WithContext(ctx))
				if got := log.lines(); len(got) != want || w.Code != 503 || served.n.Load() != 0 || l.asked() != "" {
					t.Errorf("got %d and %q, want 503 and %d lines", w.Code, got, want)
				}
			})
		})
	}
}

// TestLookupOfShadow: its error refuses no request, whatever it is, and the live policies count as before.
func TestLookupOfShadow(t *testing.T) {
	for _, err := range []error{errOurs, nil, keyfunc.ErrUnknown} {
		d, l := &directory{err: func(context.Context) error { return err }}, &spy{Limiter: newStill(t)}
		shadow := ratelimit.Policy{Name: "shadow", Key: d.key(), Limit: hourly, Shadow: true}
		h := newMiddleware(t, l, &ratelimit.Options{Logger: quiet}, shadow, byIP("live", hourly)).Handler(ok)
		for _, r := range []*http.Request{presenting("192.0.2.1", "key"), from("192.0.2.1"), presenting("192.0.2.1", "a b")} {
			if got := record(h, r).Code; got != 200 {
				t.Errorf("%v: got status %d, want 200", err, got)
			}
			want := "live:ip=192.0.2.1"
			if err == nil && r.Header.Get("X-API-Key") == "key" {
				want += " shadow:usr=of-key"
			}
			if got := l.asked(); got != want {
				t.Errorf("%v: got %q asked, want %q", err, got, want)
			}
		}
	}
}

// TestLookupsOfOneRequest: each value is looked up once per Middleware and request, whatever comes of it.
func TestLookupsOfOneRequest(t *testing.T) {
	for _, tt := range []struct {
		name   string
		err    error
		status int
	}{
		{"A known key.", nil, 200}, {"An unknown key.", keyfunc.ErrUnknown, 401}, {"A failed look-up.", errOurs, 503},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := &directory{err: func(context.Context) error { return tt.err }}
			key := d.key()
			var policies []ratelimit.Policy
			for name, k := range map[string]keyfunc.Key{
				"a": key, "b": keyfunc.Join(key, keyfunc.Const("x")), "c": keyfunc.FirstOf(key, keyfunc.IP(nil)), "d": key,
			} {
				policies = append(policies, ratelimit.Policy{Name: name, Key: k, Limit: hourly})
			}
			policies[0].Shadow = true
			o := guarding()
			inner, outer := newMiddleware(t, newStill(t), o, policies...), newMiddleware(t, newStill(t), o, policies...)
			if got := record(inner.Handler(ok), presenting("192.0.2.1", "k")); got.Code != tt.status || d.n.Load() != 1 {
				t.Errorf("got status %d and %d look-ups, want %d and 1", got.Code, d.n.Load(), tt.status)
			}
			record(outer.Handler(inner.Handler(ok)), presenting("192.0.2.1", "k"))
			want := int64(2) // the outer Middleware refuses
			if tt.err == nil {
				want = 3
			}
			if got := d.n.Load(); got != want {
				t.Errorf("got %d look-ups of all, want %d: one per Middleware", got, want)
			}
		})
	}
}

// TestEmptyID: a look-up that returns no error and no account is the program's error, and is logged once.
func TestEmptyID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logRecords
		m := newMiddleware(t, newStill(t), &ratelimit.Options{Logger: log.logger()}, ratelimit.Policy{Name: "api", Key: apiKey, Limit: hourly, Fail: algorithms.FailOpen})
		for range 3 {
			if w := record(m.Handler(ok), withKeys("empty-id")); w.Code != 500 || w.Header().Get("Retry-After") != "" {
				t.Errorf("got %s, want 500", answerOf(w))
			}
		}
		if got := log.lines(); len(got) != 1 || !strings.Contains(got[0], "empty ID") || strings.Contains(got[0], "empty-id") {
			t.Errorf("got %q, want one line that says so, without the key", got)
		}
	})
}

// TestVerdictByName: handlers find their policy by its name, and no verdict if no policy was asked.
func TestVerdictByName(t *testing.T) {
	search, all, hidden := byIP("search", hourly), byIP("all", perHour(100)), forAll("hidden", perHour(50))
	for _, p := range []*ratelimit.Policy{&search, &all, &hidden} {
		name := p.Name
		p.Skip = func(r *http.Request) bool { return !strings.Contains(r.Header.Get("Ask"), name) }
	}
	o := &ratelimit.Options{Exempt: []netip.Prefix{netip.MustParsePrefix("192.0.2.9/32")}}
	m := newMiddleware(t, newStill(t), o, all, hidden, search)
	for _, tt := range []struct {
		name, ip, ask string
		ok            bool
		want          map[string]int64 // left; a policy that is not asked is absent
	}{
		{"All are asked.", "192.0.2.1", "search all hidden", true, map[string]int64{"search": 9, "all": 99, "hidden": 49}},
		{"One is asked.", "192.0.2.2", "search", true, map[string]int64{"search": 9}},
		{"A hidden one is asked.", "192.0.2.2", "hidden", true, map[string]int64{"hidden": 48}},
		{"None applies.", "192.0.2.2", "", false, nil},
		{"The client is exempt.", "192.0.2.9", "search all hidden", false, nil},
	} {
		called := false
		record(m.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			called = true
			v, found := ratelimit.FromContext(r.Context())
			if found != tt.ok || v.Allowed != tt.ok || len(v.Policies) != len(tt.want) {
				t.Errorf("%s got %+v, %t; want %t", tt.name, v, found, tt.ok)
			}
			for _, name := range []string{"search", "all", "hidden", "nonsense", ""} {
				p, found := v.Policy(name)
				want, asked := tt.want[name]
				if found != asked || p.Decision.Remaining != want || found && p.Name != name {
					t.Errorf("%s %q: got %+v, %t; want %d left, %t", tt.name, name, p, found, want, asked)
				}
			}
		})), with(from(tt.ip), "Ask", tt.ask))
		if !called {
			t.Errorf("%s got no call of the handler", tt.name)
		}
	}
	if v, found := ratelimit.FromContext(context.Background()); found || len(v.Policies) != 0 {
		t.Errorf("got %+v of no request, want none", v)
	}
}
