package tests

import (
	"net/http"
	"net/netip"
	"testing"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
)

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// An exempt client passes, without identity and in spite of bans, and the limiter is not asked. ClientIP finds the
// address.
func TestExempt(t *testing.T) {
	table, seen := overrides.NewMemory(), new(eventLog)
	store := &spy{Limiter: newStill(t)}
	override(t, table, "nobody", "ip=10.1.2.3", ratelimit.Override{Mode: ratelimit.ModeBanned})
	m := newMiddleware(t, store, &ratelimit.Options{
		ClientIP: keyfunc.IP(&keyfunc.IPOptions{Trusted: prefixes("192.0.2.1/32")}),
		Exempt:   prefixes("10.0.0.0/8", "2001:db8::/48"), Overrides: table, Observers: []ratelimit.Observer{seen},
	}, ratelimit.Policy{Name: "tenant", Key: keyfunc.Header("X-Tenant"), Limit: hourly}, byIP("nobody", algorithms.Nobody()))
	for _, tt := range []struct {
		peer, forwarded string
		exempt          bool
	}{
		{"10.1.2.3", "", true},
		{"192.0.2.1", "198.51.100.1, 10.9.9.9", true},
		{"2001:db8:0:7::1", "", true},
		{"2001:db8:1::1", "", false},
		{"192.0.2.9", "10.9.9.9", false}, // not a proxy
		{"192.0.2.1", "10.9.9.9, 198.51.100.1", false},
		{"192.0.2.1", "", false},
	} {
		r := from(tt.peer)
		if tt.forwarded != "" {
			with(r, "X-Forwarded-For", tt.forwarded)
		}
		told := false
		w := record(m.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, told = ratelimit.FromContext(r.Context())
		})), r)
		if served := w.Code == 200; served != tt.exempt || told || store.asked() != "" {
			t.Errorf("%+v: got %d, with a verdict: %t", tt, w.Code, told)
		}
		if e := seen.of(ratelimit.Decided); e[len(e)-1].Verdict.Exempt != tt.exempt {
			t.Errorf("%+v: observed %+v", tt, e[len(e)-1].Verdict)
		}
		if said := limits(w.Header()); tt.exempt && said != "" {
			t.Errorf("%+v: got headers\n%s", tt, said)
		}
	}
	r := from("10.1.2.3")
	r.RemoteAddr = "@"
	if v, err := m.Check(with(r, "X-Tenant", "a")); v.Exempt || err != nil {
		t.Errorf("got %+v, error %v, without an address", v, err)
	}
}

func TestExemptMistakes(t *testing.T) {
	_, err := ratelimit.New(newStill(t), &ratelimit.Options{Exempt: append(prefixes("0.0.0.0/0", "10.0.0.1/8", "2001:db8::/96", "10.0.0.0/8"),
		netip.Prefix{}, netip.PrefixFrom(netip.MustParseAddr("::ffff:10.0.0.1"), 128))}, byIP("p", hourly))
	checkLines(t, err, []string{"contains all addresses", `write "10.0.0.0/8"`, `2001:db8::/96 & never matched & ip=2001:db8::/64`, "not valid", "IPv4-mapped"})
}
