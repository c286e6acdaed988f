// Tests of New: every misconfiguration, and panics.

package tests

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

var hourly = algorithms.TokenBucket(10, time.Hour)

// mistakes lists configurations, and words of each line of New's error.
var mistakes = []struct {
	name     string
	options  ratelimit.Options
	policies []ratelimit.Policy
	want     []string // per line: words that must be in it, separated by " & "
}{
	{"no policies", ratelimit.Options{}, nil, []string{"policies"}},
	{"one name twice", ratelimit.Options{},
		[]ratelimit.Policy{byIP("twice", hourly), byIP("twice", hourly)}, []string{`named "twice"`}},
	{"one name thrice", ratelimit.Options{},
		[]ratelimit.Policy{byIP("thrice", hourly), byIP("thrice", hourly), byIP("thrice", hourly)},
		[]string{`named "thrice"`, `named "thrice"`}},
	{"empty name", ratelimit.Options{}, []ratelimit.Policy{byIP("", hourly)}, []string{`policy "" & name`}},
	{"name with a space", ratelimit.Options{}, []ratelimit.Policy{byIP("a b", hourly)}, []string{`policy "a b" & name`}},
	{"name with a newline", ratelimit.Options{}, []ratelimit.Policy{byIP("a\nb", hourly)}, []string{`policy "a\nb" & name`}},
	{"name with a tilde", ratelimit.Options{}, []ratelimit.Policy{byIP("a~b", hourly)}, []string{`policy "a~b" & name`}},
	{"name not of ASCII", ratelimit.Options{}, []ratelimit.Policy{byIP("é", hourly)}, []string{`policy "é" & name`}},
	{"name too long", ratelimit.Options{}, []ratelimit.Policy{byIP(strings.Repeat("a", 65), hourly)},
		[]string{strings.Repeat("a", 65) + " & name"}},
	{"zero Limit", ratelimit.Options{}, []ratelimit.Policy{{Name: "zero-limit", Key: keyfunc.IP(nil)}},
		[]string{`"zero-limit" & the zero Limit`}},
	{"bad limit, hidden", ratelimit.Options{}, []ratelimit.Policy{forAll("bad", algorithms.FixedWindow(0, time.Second))},
		[]string{`"bad" & fixed-window 0/1s & requests`}},
	{"several mistakes in a limit", ratelimit.Options{}, []ratelimit.Policy{byIP("bad", algorithms.FixedWindow(-1, -1))},
		[]string{`"bad" & fixed-window -1/-1ns & requests`, `"bad" & fixed-window -1/-1ns & window`}},
	{"several mistakes in a key", ratelimit.Options{},
		[]ratelimit.Policy{{Name: "bad", Limit: hourly, Key: keyfunc.Join(keyfunc.Header("a b"), keyfunc.Const(""))}},
		[]string{`"bad" & "a b"`, `"bad" & Const`}},
	{"Join begins with a route", ratelimit.Options{},
		[]ratelimit.Policy{{Name: "bad", Limit: hourly, Key: keyfunc.Join(keyfunc.Route(), keyfunc.IP(nil))}},
		[]string{`"bad" & begin with a route`}},
	{"nested Join begins with a route", ratelimit.Options{},
		[]ratelimit.Policy{{Name: "bad", Limit: hourly,
			Key: keyfunc.Join(keyfunc.FirstOf(keyfunc.User(userOf), keyfunc.Route()), keyfunc.IP(nil))}},
		[]string{`"bad" & begin with a route`}},
	{"Tiers without an identity", ratelimit.Options{},
		[]ratelimit.Policy{{Name: "bad", Key: keyfunc.Const("all"), Limit: hourly, Tiers: map[string]algorithms.Limit{"gold": hourly}}},
		[]string{`"bad" & Tiers & identity`}},
	{"Tiers without a Key", ratelimit.Options{},
		[]ratelimit.Policy{{Name: "bad", Limit: hourly, Tiers: map[string]algorithms.Limit{"gold": hourly}}},
		[]string{`"bad" & Tiers & identity`}},
	{"ClientIP of a user", ratelimit.Options{ClientIP: keyfunc.Const("all")}, []ratelimit.Policy{byIP("a", hourly)}, []string{"ClientIP & keyfunc.IP"}},
	{"nil observer", ratelimit.Options{Observers: []ratelimit.Observer{nil}}, []ratelimit.Policy{byIP("a", hourly)}, []string{"Observers & nil"}},
	{"bad tiers", ratelimit.Options{},
		[]ratelimit.Policy{byPlan("bad", hourly, map[string]algorithms.Limit{
			"gold": {}, "silver": algorithms.TokenBucket(0, time.Second).WithBurst(1), "": hourly})},
		[]string{`"bad" & Tiers has ""`, `"bad" & tier "gold" & the zero Limit`, `"bad" & tier "silver" & token-bucket 0/1s`}},
	{"unknown failure mode", ratelimit.Options{},
		[]ratelimit.Policy{{Name: "bad", Key: keyfunc.IP(nil), Limit: hourly, Fail: 7}}, []string{`"bad" & failure mode & 7`}},
	{"unknown dialect", ratelimit.Options{Headers: headers.Draft | 64}, []ratelimit.Policy{byIP("a", hourly)}, []string{"Headers & 0x40"}},
	{"bad ClientIP", ratelimit.Options{ClientIP: keyfunc.IP(&keyfunc.IPOptions{
		IPv6Bits: 7, Trusted: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}})},
		[]ratelimit.Policy{byIP("a", hourly)}, []string{"ClientIP & 0.0.0.0/0", "ClientIP & IPv6Bits & 7"}},
}

func userOf(context.Context) (keyfunc.Identity, bool) { return keyfunc.Identity{}, false }

func TestNewMistakes(t *testing.T) {
	limiter := newStill(t)
	for _, tt := range mistakes {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ratelimit.New(limiter, &tt.options, tt.policies...)
			checkLines(t, err, tt.want)
		})
	}
	t.Run("nil limiter", func(t *testing.T) {
		_, err := ratelimit.New(nil, nil, byIP("a", hourly))
		checkLines(t, err, []string{"limiter & nil"})
	})
}

// TestNewEveryMistakeAtOnce joins the configurations above into one.
func TestNewEveryMistakeAtOnce(t *testing.T) {
	var o ratelimit.Options
	var policies []ratelimit.Policy
	want := []string{"limiter & nil"}
	for _, tt := range mistakes {
		if tt.policies == nil || strings.Contains(tt.name, "mistakes in") {
			continue
		}
		o.Observers = append(o.Observers, tt.options.Observers...)
		o.Headers = max(o.Headers, tt.options.Headers)
		if tt.options.ClientIP != (keyfunc.Key{}) {
			o.ClientIP = tt.options.ClientIP
		}
		if strings.HasPrefix(tt.name, "ClientIP of") {
			continue // there is one ClientIP
		}
		policies = append(policies, tt.policies...)
		want = append(want, tt.want...)
	}
	_, err := ratelimit.New(nil, &o, policies...)
	if err == nil {
		t.Fatal("got no error")
	}
	for _, words := range want {
		if !hasLine(strings.Split(err.Error(), "\n"), words) {
			t.Errorf("got\n%v\nwant a line with %s", err, words)
		}
	}
}

// TestNewReturnsNoMiddlewareWithAnError, because without its policies it would let everything pass.
func TestNewReturnsNoMiddlewareWithAnError(t *testing.T) {
	if m, err := ratelimit.New(newStill(t), nil); m != nil || err == nil {
		t.Errorf("got %v and error %v, want nil and an error", m, err)
	}
}

// checkLines wants exactly the lines that have the words, each of them readable without the others.
func checkLines(t *testing.T, err error, want []string) {
	t.Helper()
	if err == nil {
		t.Fatal("got no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(want) {
		t.Errorf("got %d lines, want %d:\n%v", len(lines), len(want), err)
	}
	for _, line := range lines {
		if !strings.HasPrefix(line, "ratelimit: ") {
			t.Errorf("got line %q, want one that says where it comes from", line)
		}
	}
	for _, words := range want {
		if !hasLine(lines, words) {
			t.Errorf("got\n%v\nwant a line with %s", err, words)
		}
	}
}

func hasLine(lines []string, words string) bool {
lines:
	for _, line := range lines {
		for word := range strings.SplitSeq(words, " & ") {
			if !strings.Contains(line, word) {
				continue lines
			}
		}
		return true
	}
	return false
}

// TestNewKeepsItsOwnCopy: later changes of the caller's maps and slices have no effect.
func TestNewKeepsItsOwnCopy(t *testing.T) {
	tiers := map[string]algorithms.Limit{"gold": algorithms.TokenBucket(7, time.Hour)}
	policies := []ratelimit.Policy{byPlan("a", hourly, tiers)}
	o := &ratelimit.Options{}
	m := newMiddleware(t, newStill(t), o, policies...)
	tiers["gold"], policies[0].Name, o.Headers = hourly, "b", headers.XRateLimit
	got := limits(record(m.Handler(ok), onPlan(from("192.0.2.1"), "gold")).Header())
	if want := `Ratelimit-Policy: "a";q=7;w=3600`; !strings.Contains(got, want) {
		t.Errorf("got\n%swant %s", got, want)
	}
}

func TestPanics(t *testing.T) {
	m := newMiddleware(t, newStill(t), nil, byIP("a", hourly))
	for name, f := range map[string]func(){
		"Handler of nil": func() { m.Handler(nil) },
		"Must":           func() { ratelimit.Must(ratelimit.New(nil, nil)) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				message := recover()
				if err, isError := message.(error); isError {
					message = err.Error()
				}
				if s, _ := message.(string); !strings.HasPrefix(s, "ratelimit: ") {
					t.Errorf("got panic %v, want one that begins with the package", message)
				}
			}()
			f()
		})
	}
}
