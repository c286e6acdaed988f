// Tests of the keys that a policy may make, and of the way from a customer to the key.

package console_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/console"
	"github.com/penstock-go/penstock/middleware/overrides"
)

var (
	apiKey = keyfunc.APIKey("X-API-Key", func(context.Context, string) (keyfunc.Identity, error) {
		return keyfunc.Identity{}, keyfunc.ErrUnknown
	})
	tenant = keyfunc.Custom("acct", func(r *http.Request) (string, error) { return r.Context().Value(userKey{}).(string), nil })
)

// keys are policies by their kinds of keys.
var keys = map[string]keyfunc.Key{
	"zero":    {},
	"ip":      keyfunc.IP(&keyfunc.IPOptions{IPv6Bits: 48, Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}),
	"user":    user,
	"api-key": apiKey,
	"tenant":  tenant, // panics without earlier middleware
	"header":  keyfunc.Header("X-Tenant"),
	"const":   keyfunc.Const("all"),

	"user-or-ip":     keyfunc.FirstOf(user, keyfunc.IP(nil)),
	"tenant-or-ip":   keyfunc.FirstOf(tenant, keyfunc.IP(nil)),
	"user-or-header": keyfunc.FirstOf(user, keyfunc.Header("X-Tenant")),
	"user-or-rest":   keyfunc.FirstOf(user, keyfunc.Const("rest")),
	"user-on-route":  keyfunc.Join(user, keyfunc.Route()),
	"ip-on-route":    keyfunc.Join(keyfunc.IP(nil), keyfunc.Route()),
	"ip-and-const":   keyfunc.Join(keyfunc.IP(nil), keyfunc.Const("x")),
	"either-route":   keyfunc.Join(keyfunc.FirstOf(user, keyfunc.IP(nil)), keyfunc.Route()),
	"user-at-ip":     keyfunc.Join(user, keyfunc.IP(nil)),
}

// everyKey returns a console of one policy for each of keys.
func everyKey(t *testing.T, table ratelimit.Overrides) *console.Console {
	t.Helper()
	var policies []ratelimit.Policy
	for name, key := range keys {
		policies = append(policies, ratelimit.Policy{Name: name, Key: key, Limit: hourly})
	}
	return console.New(newMiddleware(t, newStill(), table, policies...))
}

func TestKeys(t *testing.T) {
	c := everyKey(t, nil)
	for _, tt := range []struct {
		policy, key string
		want        string // in the error; empty: the policy may make the key
	}{
		{"zero", "ip=192.0.2.1", ""},
		{"zero", "ip=unknown", ""},
		{"zero", "ip=2001:db8:1:2::/64", ""},
		{"zero", "ip=2001:db8:1:2::3", "another form"},
		{"zero", "ip=2001:DB8:1:2::/64", "another form"},
		{"zero", "ip=2001:db8:1:2::3/64", "another form"},
		{"zero", "ip=::ffff:192.0.2.1", "another form"},
		{"zero", "ip=192.0.2.01", "another form"},
		{"zero", "ip=192.0.2.0/24", "another form"},
		{"zero", "ip=example.com", "another form"},
		{"zero", "ip=64:ff9b::c000:201", ""}, // NAT64 is not cut
		{"zero", "ip=192.0.2.1|ip=192.0.2.2", "its keys are ip"},
		{"zero", "192.0.2.1", "keys are ip"},
		{"zero", "usr=2", "keys are ip"},
		{"zero", "IP=192.0.2.1", "keys are ip"},
		{"zero", "ip=", "empty"},
		{"zero", "ip", "empty"},
		{"zero", "=192.0.2.1", "keys are ip"},
		{"ip", "ip=2001:db8:1::/48", ""},
		{"ip", "ip=10.0.0.1", ""}, // the proxy itself
		{"ip", "ip=2001:db8:1:2::/64", "another form"},

		{"user", "usr=42", ""},
		{"user", "usr=usr=2", ""},
		{"user", "usr=a%20b%7C", ""},
		{"user", "k-pro", "keys are usr"},
		{"user", "key=2", "keys are usr"},
		{"user", "usr=", "empty"},
		{"user", "usr=a b", "%20"},
		{"user", "usr=%7c", "%20"},
		{"user", "usr=%41", "%20"},
		{"user", "usr=50%", "%20"},
		{"user", "usr={42}", "%20"},
		{"user", "usr=ü", "%20"},
		{"user", "usr=1|usr=2", "its keys are usr"},
		{"user", "usr=1|", "keys are usr"},
		{"user", "ip=192.0.2.1", "keys are usr"},

		{"api-key", "usr=42", ""},
		{"api-key", "ip=192.0.2.1", ""}, // of unknown keys
		{"api-key", "ip=k-pro", "another form"},
		{"api-key", "k-pro", "keys are usr or ip"},
		{"api-key", "usr=42|ip=192.0.2.1", "its keys are usr or ip"},
		{"api-key", "ip=192.0.2.0/24", "another form"},
		{"api-key", "ip=2001:db8::1/64", "another form"},
		{"api-key", "ip=2001:DB8::/64", "another form"},
		{"api-key", "ip=::ffff:192.0.2.1", "another form"},
		{"api-key", "ip=2001:db8::1%25eth0", "another form"},
		{"tenant", "acct=42", ""},
		{"tenant", "ip=2001:db8::/64", ""}, // of unknown accounts, as Options.ClientIP cuts it
		{"tenant", "ip=2001:db8::/56", "another form"},
		{"tenant", "usr=42", "keys are acct or ip"},
		{"header", "hdr.x-tenant=a", ""},
		{"header", "hdr.x-other=a", "keys are hdr.x-tenant"},
		{"const", "const=all", ""},
		{"const", "const=al", "its keys are const=all"},
		{"user-or-rest", "const=rest", ""},
		{"user-or-rest", "const=x", "its keys are usr or const=rest"},

		{"user-on-route", "usr=42|rt=GET%20/v1/orders/%7Bid%7D", ""},
		{"user-on-route", "usr=42|ip=192.0.2.1", "keys are usr|rt"},
		{"user-on-route", "usr=42", "its keys are usr|rt"},
		{"user-on-route", "rt=unmatched", "its keys are usr|rt"},
		{"user-on-route", "rt=unmatched|usr=42", "its keys are usr|rt"},
		{"user-on-route", "usr=42|rt=unmatched|rt=unmatched", "its keys are usr|rt"},
		{"user-or-ip", "usr=42", ""},
		{"user-or-ip", "ip=192.0.2.1", ""},
		{"user-or-ip", "usr=42|ip=192.0.2.1", "its keys are usr or ip"},
		{"user-at-ip", "usr=42|ip=192.0.2.1", ""},
		{"user-at-ip", "ip=192.0.2.1", "its keys are usr|ip"},
		{"either-route", "ip=192.0.2.1|rt=unmatched", ""},
		{"either-route", "usr=42|ip=192.0.2.1|rt=unmatched", "its keys are usr|rt or ip|rt"},
		{"ip-on-route", "ip=2001:db8::/64|rt=unmatched", ""},
		{"ip-on-route", "ip=2001:db8::1|rt=unmatched", "another form"},
	} {
		_, err := c.Reset(ctx, console.Subject{Policy: tt.policy, Key: tt.key})
		if tt.want == "" && err != nil {
			t.Errorf("%s: %s: got error %v, want none", tt.policy, tt.key, err)
		}
		if tt.want != "" && (!errors.Is(err, algorithms.ErrInvalid) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "k-pro")) {
			t.Errorf("%s: %s: got error %v, want ErrInvalid with %q, and without the key", tt.policy, tt.key, err, tt.want)
		}
	}
}

// The key of a subject: for a reset the whole key, for a ban its first part.
func TestKeyOfCustomer(t *testing.T) {
	table := overrides.NewMemory()
	c := everyKey(t, table)
	for _, tt := range []struct {
		policy, id, ip string
		whole, first   string // the key, or words in the error
	}{
		{"zero", "", "192.0.2.1", "ip=192.0.2.1", "ip=192.0.2.1"},
		{"zero", "", "::ffff:192.0.2.1", "ip=192.0.2.1", "ip=192.0.2.1"},
		{"zero", "", "2001:db8:1:2::3%eth0", "ip=2001:db8:1:2::/64", "ip=2001:db8:1:2::/64"},
		{"ip", "", "2001:db8:1:2::3", "ip=2001:db8:1::/48", "ip=2001:db8:1::/48"},
		{"user", "42", "", "usr=42", "usr=42"},
		{"user", "a|b {c} 50% ü", "", "usr=a%7Cb%20%7Bc%7D%2050%25%20%C3%BC", "usr=a%7Cb%20%7Bc%7D%2050%25%20%C3%BC"},
		{"api-key", "42", "", "usr=42", "usr=42"},
		{"api-key", "", "192.0.2.1", "ip=192.0.2.1", "ip=192.0.2.1"},
		{"user-or-ip", "42", "", "usr=42", "usr=42"},
		{"user-or-rest", "42", "", "usr=42", "usr=42"},
		{"ip-and-const", "", "192.0.2.1", "ip=192.0.2.1|const=x", "ip=192.0.2.1"},
		{"user-on-route", "42", "", "its keys are usr|rt", "usr=42"},
		{"either-route", "", "192.0.2.1", "its keys are usr|rt or ip|rt", "ip=192.0.2.1"},
		{"user-at-ip", "42", "", "its keys are usr|ip", "usr=42"},
		{"user-at-ip", "", "192.0.2.1", "its keys are usr|ip", "its keys are usr|ip"},

		{"zero", "42", "", "counts no accounts, but ip", "counts no accounts, but ip"},
		{"user", "", "192.0.2.1", "counts no addresses, but usr", "counts no addresses, but usr"},
		{"user", "42", "192.0.2.1", "exactly one of", "exactly one of"},
		{"user", "", "", "exactly one of", "exactly one of"},
	} {
		s := console.Subject{Policy: tt.policy, ID: tt.id}
		if tt.ip != "" {
			s.IP = netip.MustParseAddr(tt.ip)
		}
		if _, err := c.Reset(ctx, s); strings.Contains(tt.whole, " ") != (err != nil) || err != nil && !strings.Contains(err.Error(), tt.whole) {
			t.Errorf("%s: reset of %q, %q: got error %v, want %s", tt.policy, tt.id, tt.ip, err, tt.whole)
		}
		err := c.Ban(ctx, s, time.Time{}, "")
		all, _ := table.List(ctx, tt.policy)
		if _, found := all[tt.first]; !found && (err == nil || !strings.Contains(err.Error(), tt.first)) {
			t.Errorf("%s: ban of %q, %q: got %v, error %v, want %s", tt.policy, tt.id, tt.ip, all, err, tt.first)
		}
		for key := range all {
			_ = table.Clear(ctx, tt.policy, key)
		}
	}
}

// The middleware makes the key that the console finds for the customer.
func TestKeyOfCustomerIsTheKeyOfRequests(t *testing.T) {
	clientIP := keyfunc.IP(&keyfunc.IPOptions{Hops: 1, IPv6Bits: 48})
	m := ratelimit.Must(ratelimit.New(newStill(), &ratelimit.Options{ClientIP: clientIP}, byIP("zero", hourly), byUser("user", hourly)))
	r := asUser("a b", "")
	r.Header.Set("X-Forwarded-For", "2001:db8:1:2::3")
	if _, err := m.Check(r); err != nil {
		t.Fatal(err)
	}
	for _, s := range []console.Subject{{Policy: "zero", IP: netip.MustParseAddr("2001:db8:1:2::99")}, {Policy: "user", ID: "a b"}} {
		if got := who(t, console.New(m), s)[0].Limits[0].Remaining; got != 9 {
			t.Errorf("%+v: got %d left, want one unit used", s, got)
		}
	}
}

// Every action takes a customer, answers 404 if there is nothing to give back or to lift, and refuses a key that the policy never makes. Neither the table, the log nor the
// answer then contains the key.
func TestHandlerKeys(t *testing.T) {
	table := overrides.NewMemory()
	h, logged := newHandler(t, newStill(), table, byUser("p", hourly), byIP("q", hourly))
	for _, tt := range []struct{ method, target, body string }{
		{"POST", "/reset", `{"policy":"POLICY",JSON}`},
		{"POST", "/grant", `{"policy":"POLICY",JSON,"units":1}`},
		{"POST", "/ban", `{"policy":"POLICY",JSON}`},
		{"POST", "/unban", `{"policy":"POLICY",JSON}`},
		{"PUT", "/overrides/POLICY?SUBJECT", `{"limit":"5/1m"}`},
		{"GET", "/overrides/POLICY?SUBJECT", ""},
		{"DELETE", "/overrides/POLICY?SUBJECT", ""},
	} {
		for _, s := range []struct {
			policy, name, value, key string
		}{
			{"p", "usr", "42", "usr=42"},
			{"p", "key", "usr=42", "usr=42"},
			{"q", "ip", "2001:db8::1", "ip=2001:db8::/64"},
			{"p", "key", "hunter2", ""},
			{"p", "key", "key=hunter2", ""},
			{"q", "usr", "hunter2", ""},
			{"q", "ip", "hunter2", ""},
		} {
			logged.Reset()
			fill := strings.NewReplacer("POLICY", s.policy, "SUBJECT", s.name+"="+s.value, "JSON", `"`+s.name+`":"`+s.value+`"`)
			w := call(h, tt.method, fill.Replace(tt.target), fill.Replace(tt.body))
			answer, log := w.Body.String(), logged.String()
			all, _ := table.List(ctx, s.policy)
			switch {
			case s.key != "" && (w.Code > 204 && (tt.method != "POST" || w.Code != 404) || tt.method != "GET" && !strings.Contains(log, `key="`+s.key)):
				t.Errorf("%s %s of %s %s: got %d %s and log %q, want key %s", tt.method, tt.target, s.name, s.value, w.Code, answer, log, s.key)
			case s.key == "" && (w.Code != 400 || log != "" || strings.Contains(answer, "hunter2")):
				t.Errorf("%s %s of %s %s: got %d %s and log %q, want 400 without the text", tt.method, tt.target, s.name, s.value, w.Code, answer, log)
			}
			for key := range all {
				if strings.Contains(key, "hunter2") {
					t.Errorf("%s %s: the table holds %s", tt.method, tt.target, key)
				}
			}
		}
	}
	if w := call(h, "GET", "/who?key=hunter2", ""); w.Code != 400 || strings.Contains(w.Body.String(), "hunter2") {
		t.Errorf("got %d %s, want 400 without the text", w.Code, w.Body)
	}
	if w := call(h, "POST", "/reset", `{"policy":"p","key":"hunter2"}`); !strings.Contains(w.Body.String(), "its keys are usr") {
		t.Errorf("got %s, its keys are of the keys", w.Body)
	}
}

// An operator reads and clears an override whose key the policy never makes. The log does not contain the key.
func TestHandlerClearsForeignKeys(t *testing.T) {
	table := overrides.NewMemory()
	override(t, table, "p", "k-pro", ratelimit.Override{Mode: ratelimit.ModeOff})
	h, logged := newHandler(t, newStill(), table, byUser("p", hourly))
	if w := call(h, "GET", "/overrides/p?key=k-pro", ""); w.Code != 200 || !strings.HasPrefix(compact(w.Body.Bytes()), `{"mode":"off","since":"`) {
		t.Errorf("got %d %s, want the override", w.Code, w.Body)
	}
	w := call(h, "DELETE", "/overrides/p?key=k-pro", "")
	if _, found := table.Find("p", "k-pro"); w.Code != 204 || found || !strings.Contains(logged.String(), "clear") || strings.Contains(logged.String(), "k-pro") {
		t.Errorf("got %d %s, still there: %t, log %s", w.Code, w.Body, found, logged)
	}
}

// The console refuses the limit of an override that the middleware would ignore, and Who shows the policy's own.
func TestLimitsThatDoNotGoTogether(t *testing.T) {
	table := overrides.NewMemory()
	p, other := byUser("p", algorithms.Concurrent(3, time.Minute)), byUser("q", hourly)
	h, _ := newHandler(t, newStill(), table, p, other)
	for _, policy := range []string{"p", "q"} {
		w := call(h, "PUT", "/overrides/"+policy+"?usr=42", `{"limit":"leaky-bucket 5/1m"}`)
		if w.Code != 400 || !strings.Contains(w.Body.String(), "leaky-bucket") || strings.Contains(w.Body.String(), "own-") {
			t.Errorf("%s: got %d %s, want 400", policy, w.Code, w.Body)
		}
		override(t, table, policy, "usr=42", ratelimit.Override{Limit: algorithms.LeakyBucket(5, time.Minute)})
		e := who(t, console.New(newMiddleware(t, newStill(), table, p, other)), console.Subject{Policy: policy, ID: "42"})[0]
		if e.Reason != console.ByDefault || len(e.Limits) != 1 {
			t.Errorf("%s: got %+v, want the policy's own limit in force", policy, e)
		}
	}
}

// A text of keyfunc.Text is a key of the console, whatever the client's name is.
func TestTextNamesAKey(t *testing.T) {
	table := overrides.NewMemory()
	c := everyKey(t, table)
	if err := c.Ban(ctx, console.Subject{Policy: "header", Key: keyfunc.Text("hdr.x-tenant", "Acme GmbH")}, time.Time{}, ""); err != nil {
		t.Error(err)
	}
	if _, found := table.Find("header", "hdr.x-tenant=Acme%20GmbH"); !found {
		t.Error("got no ban of the tenant")
	}
	if err := c.Ban(ctx, console.Subject{Policy: "header", Key: "hdr.x-tenant=Acme GmbH"}, time.Time{}, ""); !errors.Is(err, algorithms.ErrInvalid) {
		t.Errorf("got error %v of a text that no key has, want ErrInvalid", err)
	}
}

// An account in a body has one spelling, and so operators may use any: a ban that names it otherwise holds.
func TestSpellingsOfAnAccount(t *testing.T) {
	login := keyfunc.JSONField("login", "user")
	m := newMiddleware(t, newStill(), overrides.NewMemory(), ratelimit.Policy{Name: "p", Key: keyfunc.Join(login, keyfunc.Const("x")), Limit: hourly}, ratelimit.Policy{Name: "q", Key: login, Limit: hourly})
	c := console.New(m)
	if err := c.Ban(ctx, console.Subject{Policy: "q", Key: "login=%20Bob@Example.com"}, time.Time{}, ""); err != nil {
		t.Fatal(err)
	}
	send := func() int {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"user":"bob@example.com"}`))
		return record(m.Handler(http.NotFoundHandler()), r).Code
	}
	if got := send(); got != http.StatusForbidden {
		t.Errorf("banned as Bob: got %d, want 403", got)
	}
	if _, err := c.Unban(ctx, console.Subject{Policy: "q", Key: "login=BOB@example.com"}); err != nil {
		t.Error(err)
	}
	if got := send(); got != http.StatusNotFound {
		t.Errorf("unbanned: got %d, want the handler's 404", got)
	}
	if units, err := c.Reset(ctx, console.Subject{Policy: "p", Key: "login=Bob@example.com|const=x"}); units != 1 || err != nil {
		t.Errorf("got %d units back, error %v, want 1", units, err)
	}
	if all := who(t, c, console.Subject{Key: "login=BOB@example.com"}); len(all) != 2 || all[0].Key != "login=bob%40example.com" && all[0].Key != "login=bob@example.com" {
		t.Errorf("got %+v, want the account's keys", all)
	}
}
