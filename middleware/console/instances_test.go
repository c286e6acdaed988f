// Tests of questions to all instances.

package console_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/console"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// A fleet is instances of one service, each with a console on an address of its own, and one port. Their name has all
// of the addresses.
type fleet struct {
	middlewares []*ratelimit.Middleware
	handlers    []http.Handler
}

// startFleet starts instances at 127.0.0.1 and up. Nothing listens at the address after them.
func startFleet(t *testing.T, instances int, gone ...string) *fleet {
	t.Helper()
	f, listeners := new(fleet), make([]net.Listener, instances)
	port := "0"
	for i := range listeners {
		l, err := net.Listen("tcp", net.JoinHostPort(loopback(i), port))
		if err != nil {
			t.Fatal(err)
		}
		listeners[i] = l
		_, port, _ = net.SplitHostPort(l.Addr().String())
	}
	limiter, table := newStill(), overrides.NewMemory()
	for _, l := range listeners {
		ban := &ratelimit.Ban{Denials: 5, Within: time.Hour, For: 10 * time.Hour}
		m := newMiddleware(t, limiter, table, ratelimit.Policy{Name: "p", Key: user, Limit: hourly, Ban: ban, Tiers: map[string]algorithms.Limit{"big": algorithms.TokenBucket(10, 2*time.Hour)}}, ratelimit.Policy{Name: "all", Key: keyfunc.Const("x"), Limit: hourly})
		c := console.New(m)
		c.Instances = append([]string{"http://" + net.JoinHostPort("shop-admin", port) + "/limits/"}, gone...)
		h, err := c.Handler(operator)
		if err != nil {
			t.Fatal(err)
		}
		console.LookUp(h, func(host string) (all []string) {
			if host == "shop-admin" {
				for i := range instances {
					all = append(all, loopback(i))
				}
			}
			return all
		})
		server := httptest.NewUnstartedServer(http.StripPrefix("/limits", h))
		_ = server.Listener.Close()
		server.Listener = l
		server.Start()
		t.Cleanup(server.Close)
		f.middlewares, f.handlers = append(f.middlewares, m), append(f.handlers, h)
	}
	return f
}

func loopback(i int) string { return net.IPv4(127, 0, 0, byte(1+i)).String() }

// send sends requests of a user to an instance.
func (f *fleet) send(instance, requests int, id string) {
	for range requests {
		record(f.middlewares[instance].Handler(http.NotFoundHandler()), asUser(id, ""))
	}
}

// An answer is that of /denied and /near.
type answer struct {
	Clients []struct {
		Client           string
		Denied, Admitted uint64
		Policies         []string
	}
	Instances int
	Failed    []struct{ Instance, Why string }
}

func ask(t *testing.T, h http.Handler, target string) (a answer) {
	t.Helper()
	w := call(h, http.MethodGet, target, "")
	if err := json.Unmarshal(w.Body.Bytes(), &a); w.Code != http.StatusOK || err != nil {
		t.Fatalf("%s: got %d %s", target, w.Code, w.Body)
	}
	return a
}

// Any instance answers for all: a client's denials are added up, and so are its requests near the limit.
func TestInstancesAnswerTogether(t *testing.T) {
	f := startFleet(t, 3)
	f.send(0, 12, "42") // the limit is 10, on all instances together
	f.send(1, 3, "42")
	f.send(2, 9, "7")
	for i, h := range f.handlers {
		a := ask(t, h, "/denied?since=1h")
		if len(a.Clients) != 1 || a.Clients[0].Denied != 5 || a.Instances != 3 || len(a.Failed) != 0 || !reflect.DeepEqual(a.Clients[0].Policies, []string{"p"}) {
			t.Errorf("instance %d: got %+v, want five denials of one client, from three instances", i, a)
		}
		a = ask(t, h, "/near")
		if len(a.Clients) != 1 || a.Clients[0].Admitted != 2 || a.Instances != 3 {
			t.Errorf("instance %d: got %+v, want two requests near the limit", i, a)
		}
		// Each instance shows hashes, of clients that only one of them has denied.
		client := strings.Replace(ask(t, h, "/denied").Clients[0].Client, "#", "%23", 1)
		if w := call(h, http.MethodGet, "/who?key="+client, ""); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"verdict": "denied"`) {
			t.Errorf("instance %d: who: got %d %s, want the answer of an instance that knows the client", i, w.Code, w.Body)
		}
	}
	if a := ask(t, f.handlers[2], "/denied?here=1"); len(a.Clients) != 0 || a.Instances != 0 {
		t.Errorf("got %+v of an instance alone, want no denial", a)
	}
}

// An instance that several of the addresses lead to counts once, such as one with an address of each version of IP.
func TestInstanceOfTwoAddressesCountsOnce(t *testing.T) {
	again := httptest.NewUnstartedServer(nil)
	f := startFleet(t, 2, "http://"+again.Listener.Addr().String())
	again.Config.Handler = f.handlers[0]
	again.Start()
	defer again.Close()
	f.send(0, 12, "42")
	if a := ask(t, f.handlers[1], "/denied"); len(a.Clients) != 1 || a.Clients[0].Denied != 2 || a.Instances != 2 || len(a.Failed) != 0 {
		t.Errorf("got %+v, want two denials, from two instances", a)
	}
}

// What an instance says of an override, a ban and a limit that denies all arrives as it was said.
func TestInstancesPassOnOverrides(t *testing.T) {
	f := startFleet(t, 2)
	f.send(0, 11, "42")
	for body, want := range map[string]string{
		`{"limit":"nobody"}`:                    `"limit": "nobody"`,
		`{"limit":"5/1m","for":"1h"}`:           `"limit": "token-bucket 5/1m"`,
		`{"mode":"banned","for":"1h"}`:          "it is banned",
		`{"limit":"token-bucket 9/1h burst 3"}`: `"limit": "token-bucket 9/1h burst 3"`,
	} {
		if w := call(f.handlers[0], http.MethodPut, "/overrides/p?key=usr=42", body); w.Code != http.StatusNoContent {
			t.Fatalf("%s: got %d %s", body, w.Code, w.Body)
		}
		w := call(f.handlers[1], http.MethodGet, "/who?usr=42", "")
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) || !strings.Contains(w.Body.String(), `"instances": 2`) || strings.Contains(w.Body.String(), `"failed"`) {
			t.Errorf("%s: got %d %s, want %s from two instances", body, w.Code, w.Body, want)
		}
	}
}

// Only an instance that has denied a client knows its tier, so the others ask it.
func TestInstancesKnowTiers(t *testing.T) {
	f := startFleet(t, 2)
	for range 12 {
		record(f.middlewares[0].Handler(http.NotFoundHandler()), asUser("42", "big"))
	}
	for range 3 {
		record(f.middlewares[1].Handler(http.NotFoundHandler()), asUser("42", "big"))
	}
	if w := call(f.handlers[0], http.MethodGet, "/who?usr=42&here=1", ""); !strings.Contains(w.Body.String(), `"denied": 2`) {
		t.Errorf("the first instance alone: got %s, want two denials", w.Body)
	}
	f.send(1, 1, "7")
	for i, h := range f.handlers {
		w := call(h, http.MethodGet, "/who?usr=42", "")
		if says := strings.Count(w.Body.String(), `"says": "p denies usr=42 for`); says != 1 || !strings.Contains(w.Body.String(), `"from": "tier"`) || !strings.Contains(w.Body.String(), `"denied": 5`) {
			t.Errorf("instance %d: got %s, want five denials under the tier", i, w.Body)
		}
		if w := call(h, http.MethodGet, "/who?usr=", ""); w.Code != http.StatusBadRequest {
			t.Errorf("instance %d, without an account: got %d, want 400", i, w.Code)
		}
	}
}

// A ban holds on all instances, but those that have not denied its client lately do not know of it.
func TestInstancesTellEachOtherOfBans(t *testing.T) {
	f := startFleet(t, 2)
	f.send(0, 15, "42")
	redistest.UntilEmpty(t, "the ban", func() string { // it begins a moment after the last denial
		for i, h := range f.handlers {
			if w := call(h, http.MethodGet, "/overrides", ""); strings.Count(w.Body.String(), `"says": "p denies`) != 1 {
				return fmt.Sprintf("one ban from instance %d, but %d %s", i, w.Code, w.Body)
			}
		}
		return ""
	})
	if w := call(f.handlers[1], http.MethodGet, "/overrides?here=1", ""); strings.Contains(w.Body.String(), "says") {
		t.Errorf("the second instance alone: got %s, want no ban", w.Body)
	}
}

// A client that an instance has denied for long is not new because another instance denies it for the first time.
func TestInstancesAgreeWhoIsNew(t *testing.T) {
	f := startFleet(t, 2)
	f.send(0, 11, "42")
	since := time.Now().UTC().Format(time.RFC3339Nano)
	f.send(1, 1, "42")
	if a := ask(t, f.handlers[1], "/denied?since="+since+"&here=1"); len(a.Clients) != 1 {
		t.Errorf("got %+v of the second instance alone, want the client", a)
	}
	if a := ask(t, f.handlers[1], "/denied?since="+since); len(a.Clients) != 0 {
		t.Errorf("got %+v, want no new client", a)
	}
}

// What is missing is said: an instance that does not answer, refuses, or answers as something else, and a name without
// an address.
func TestMissingInstancesAreNamed(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sesame" {
			t.Errorf("got the authorization %q, want the operator's", r.Header.Get("Authorization"))
		}
		if strings.HasPrefix(r.URL.Path, "/refuses/") {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer other.Close()
	closed := httptest.NewServer(nil)
	closed.Close()
	f := startFleet(t, 1, closed.URL, other.URL+"/refuses", other.URL+"/other", "https://nowhere")
	f.send(0, 11, "42")
	a := ask(t, f.handlers[0], "/denied")
	var why []string
	for _, failed := range a.Failed {
		why = append(why, failed.Why)
	}
	for _, want := range []string{"no answer", "it answered 403 Forbidden", "the answer is not a console's", "the name has no address"} {
		if !strings.Contains(strings.Join(why, "; "), want) {
			t.Errorf("got %q, want %q", why, want)
		}
	}
	if len(a.Clients) != 1 || len(a.Failed) != 4 || a.Instances != 4 {
		t.Errorf("got %+v, want the client of the one instance, and four failures", a)
	}
}

func TestInstancesAreValidated(t *testing.T) {
	c := console.New()
	c.Instances = []string{"shop-admin:9090", "http://", "ftp://a", "http://a/?b=1", "http://me@a", "http://a:9090/limits"}
	_, err := c.Handler(operator)
	if err == nil || strings.Count(err.Error(), "\n") != 4 || strings.Contains(err.Error(), "9090/limits\": want") {
		t.Errorf("got %v, want five mistakes", err)
	}
}

// Clients within a fifth of a limit are near it; those that have more left, and those of shadow policies and constant
// keys, are not listed.
func TestNear(t *testing.T) {
	m := newMiddleware(t, newStill(), nil,
		byUser("p", hourly), ratelimit.Policy{Name: "shadow", Key: user, Limit: hourly, Shadow: true},
		ratelimit.Policy{Name: "all", Key: keyfunc.Const("x"), Limit: algorithms.TokenBucket(30, time.Hour)})
	for id, requests := range map[string]int{"8": 8, "9": 9, "12": 12} {
		for range requests {
			record(m.Handler(http.NotFoundHandler()), asUser(id, ""))
		}
	}
	near := console.New(m).Near()
	if len(near) != 2 || near[0].Admitted != 2 || near[1].Admitted != 1 || !reflect.DeepEqual(near[0].Policies, []string{"p"}) || near[0].Last.IsZero() {
		t.Errorf("got %+v, want 2 requests of one client and 1 of another", near)
	}
}
