// Tests of Options.Refused, of Refuse, and of what a verdict says about a refusal.

package tests

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// TestRefuseIsTheDefault: an Options.Refused that calls Refuse answers as if it were nil, byte for byte.
func TestRefuseIsTheDefault(t *testing.T) {
	for _, dialect := range []headers.Dialect{0, headers.XRateLimit} {
		synctest.Test(t, func(t *testing.T) {
			plain := waysToBeRefused(t, ratelimit.Options{Headers: dialect})
			called := waysToBeRefused(t, ratelimit.Options{Headers: dialect, Refused: ratelimit.Refuse})
			for name, way := range called {
				for _, grpc := range []bool{false, true} {
					answers := [2]*httptest.ResponseRecorder{httptest.NewRecorder(), httptest.NewRecorder()}
					for i, way := range []refusing{plain[name], way} {
						answers[i].Header().Set("Etag", "outer")
						r := way.r()
						if grpc {
							r.Method = http.MethodPost
							r.Header.Set("Content-Type", "application/grpc")
						}
						way.m.Handler(ok).ServeHTTP(answers[i], r)
					}
					if want, got := answerOf(answers[0]), answerOf(answers[1]); got != want {
						t.Errorf("%s, gRPC %t: got\n%s\nof Refuse, want\n%s", name, grpc, got, want)
					}
				}
			}
		})
	}
}

// TestDenyInRefused: Deny would call Options.Refused, and so itself, for ever.
func TestDenyInRefused(t *testing.T) {
	var m *ratelimit.Middleware
	m = newMiddleware(t, newStill(t), &ratelimit.Options{Refused: func(w http.ResponseWriter, r *http.Request, v ratelimit.Verdict) {
		m.Deny(w, r, v)
	}}, byIP("p", algorithms.Nobody()))
	for name, refuse := range map[string]func(http.ResponseWriter, *http.Request){
		"Handler": m.Handler(ok).ServeHTTP,
		"Deny": func(w http.ResponseWriter, r *http.Request) {
			v, _ := m.Check(r)
			m.Deny(w, r, v)
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if why := fmt.Sprint(recover()); !strings.Contains(why, "call ratelimit.Refuse") {
					t.Errorf("got the panic %q, want one that names Refuse", why)
				}
			}()
			refuse(httptest.NewRecorder(), from("192.0.2.1"))
		})
	}
}

// TestRefuseNeedsARefusal: as Deny does.
func TestRefuseNeedsARefusal(t *testing.T) {
	admitted, err := newMiddleware(t, newStill(t), nil, byIP("p", hourly)).Check(from("192.0.2.1"))
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]ratelimit.Verdict{"admitted": admitted, "zero": {}, "of no Middleware": {Status: 429}} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("got no panic")
				}
			}()
			ratelimit.Refuse(httptest.NewRecorder(), from("192.0.2.1"), v)
		})
	}
}

// TestVerdictNamesTheClient: Refused, Check and observers learn which keys were counted, behind a proxy too, and may
// keep them.
func TestVerdictNamesTheClient(t *testing.T) {
	for _, plain := range []bool{false, true} {
		var refused, checked []string
		seen := new(eventLog)
		o := &ratelimit.Options{
			ClientIP: keyfunc.IP(&keyfunc.IPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}), PlainKeys: plain,
			Refused: func(_ http.ResponseWriter, _ *http.Request, v ratelimit.Verdict) {
				refused = append(refused, v.Policies[0].Key, v.Policies[1].Key)
			},
			Observers: []ratelimit.Observer{seen},
		}
		m := newMiddleware(t, newStill(t), o, byIP("p", algorithms.Nobody()), forAll("all", hourly))
		var want []string
		for i := range 20 {
			address := fmt.Sprintf("203.0.113.%d", 10+i)
			r := with(from("10.1.1.1"), "X-Forwarded-For", address)
			record(m.Handler(ok), r)
			v, _ := m.Check(r)
			checked = append(checked, v.Policies[0].Key, v.Policies[1].Key)
			key := "ip=" + address
			if !plain {
				key = "ip=#" + shaOf(key)
			}
			want = append(want, key, "const=all")
		}
		var observed []string
		for i, e := range seen.of(ratelimit.Decided) {
			if i%2 == 0 { // the Handler's
				observed = append(observed, e.Verdict.Policies[0].Key, e.Verdict.Policies[1].Key)
			}
		}
		for name, got := range map[string][]string{"Refused": refused, "Check": checked, "observers": observed} {
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("PlainKeys %t: %s got the keys %q, want %q", plain, name, got, want)
			}
		}
	}
}

// TestRefusalsLeaveATrace: observers count and log every refusal, and learn its reason.
func TestRefusalsLeaveATrace(t *testing.T) {
	seen := new(eventLog)
	m := newMiddleware(t, newStill(t), &ratelimit.Options{Observers: []ratelimit.Observer{seen}, Logger: quiet}, ratelimit.Policy{Name: "p", Key: apiKey, Limit: hourly})
	for _, tt := range []struct {
		key    string
		status int
		reason error
	}{
		{"a b", 400, keyfunc.ErrMalformed}, {"", 401, keyfunc.ErrMissing}, {"guess", 401, keyfunc.ErrUnknown}, {"good-key", 0, nil},
	} {
		r := from("192.0.2.1")
		if tt.key != "" {
			r = withKeys(tt.key)
		}
		record(m.Handler(ok), r)
		all := seen.of(ratelimit.Decided)
		v := all[len(all)-1].Verdict
		if v.Status != tt.status || !errors.Is(v.Err, tt.reason) || (v.Err == nil) != (tt.reason == nil) {
			t.Errorf("key %q: got status %d and %v, want %d and %v", tt.key, v.Status, v.Err, tt.status, tt.reason)
		}
	}
}

// TestVerdictSaysWhy: the error of a refusal, which is nil where policies have decided.
func TestVerdictSaysWhy(t *testing.T) {
	hungUp, hangUp := context.WithCancel(context.Background())
	hangUp()
	closed := newMiddleware(t, newStill(t), nil, byIP("p", hourly))
	if err := closed.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := &ratelimit.Options{Logger: quiet}
	for name, tt := range map[string]struct {
		m       *ratelimit.Middleware
		r       *http.Request
		allowed bool
		want    error
	}{
		"denied":        {newMiddleware(t, newStill(t), nil, byIP("p", algorithms.Nobody())), from("192.0.2.1"), false, nil},
		"closed":        {closed, from("192.0.2.1"), false, ratelimit.ErrClosed},
		"hung up":       {newMiddleware(t, newStill(t), o, byIP("p", hourly)), from("192.0.2.1").WithContext(hungUp), false, context.Canceled},
		"failed closed": {newMiddleware(t, broken(errDown), o, modes(algorithms.FailClosed)...), from("192.0.2.1"), false, errDown},
		"failed open":   {newMiddleware(t, broken(errDown), o, modes(algorithms.FailOpen)...), from("192.0.2.1"), true, errDown},
	} {
		v, err := tt.m.Check(tt.r)
		if v.Allowed != tt.allowed || !errors.Is(v.Err, tt.want) || (v.Err == nil) != (tt.want == nil) {
			t.Errorf("%s: got %+v, want the error %v", name, v, tt.want)
		}
		if !v.Allowed && !errors.Is(err, v.Err) {
			t.Errorf("%s: got %v of Check, want the verdict's %v", name, err, v.Err)
		}
	}
}

// TestMalformedSaysWhich: a 400 names the identity, and quotes neither the request nor an error of the service.
func TestMalformedSaysWhich(t *testing.T) {
	secret := keyfunc.Custom("tenant", func(*http.Request) (string, error) {
		return "", fmt.Errorf("SECRET of row 7: %w", keyfunc.ErrMalformed)
	})
	absent := keyfunc.Custom("tenant", func(*http.Request) (string, error) { return "", nil })
	long := strings.Repeat("k", 4097)
	for name, tt := range map[string]struct {
		key    keyfunc.Key
		r      *http.Request
		detail string
	}{
		"two lines":      {apiKey, withKeys("a", "b"), "X-Api-Key is malformed: several field lines."},
		"a long token":   {keyfunc.APIKey("Authorization", anyone), with(from("192.0.2.1"), "Authorization", "Bearer "+long), "Authorization is malformed: longer than 4096 bytes."},
		"a header":       {keyfunc.Header("X-Tenant"), with(with(from("192.0.2.1"), "X-Tenant", "a"), "X-Tenant", "b"), "X-Tenant is malformed: several field lines."},
		"a Custom":       {secret, from("192.0.2.1"), "tenant is malformed."},
		"an absent one":  {absent, from("192.0.2.1"), "tenant is missing."},
		"one of a Join":  {keyfunc.Join(keyfunc.IP(nil), secret), from("192.0.2.1"), "tenant is malformed."},
		"one of FirstOf": {keyfunc.FirstOf(keyfunc.Header("X-None"), secret), from("192.0.2.1"), "tenant is malformed."},
	} {
		w := record(newMiddleware(t, newStill(t), nil, ratelimit.Policy{Name: "p", Key: tt.key, Limit: hourly}).Handler(ok), tt.r)
		want := `{"type":"about:blank","title":"Bad Request","status":400,"detail":"` + tt.detail + `"}`
		if w.Code != 400 || w.Body.String() != want {
			t.Errorf("%s: got %d %s, want %s", name, w.Code, w.Body, want)
		}
	}
}

// anyone is a lookup that knows every key.
func anyone(context.Context, string) (keyfunc.Identity, error) {
	return keyfunc.Identity{ID: "42"}, nil
}

// TestHangUpIsNoFailureOfLimitOf: a database whose query the client has cancelled is not in trouble.
func TestHangUpIsNoFailureOfLimitOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logRecords
		p := byIP("p", hourly)
		p.LimitOf = func(r *http.Request) (algorithms.Limit, error) { return algorithms.Limit{}, r.Context().Err() }
		hungUp, hangUp := context.WithCancel(t.Context())
		hangUp()
		_, _ = newMiddleware(t, newStill(t), &ratelimit.Options{Logger: log.logger()}, p).Check(from("192.0.2.1").WithContext(hungUp))
		for _, line := range log.lines() {
			if strings.Contains(line, "LimitOf") {
				t.Errorf("got the line %q, want none of LimitOf", line)
			}
		}
	})
}
