// Tests of bans for repeated denials.

package tests

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/console"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// banning bans after 3 denials within a minute, for 10 s, 20 s, 30 s, 30 s.
func banning(name string, l algorithms.Limit) ratelimit.Policy {
	p := byIP(name, l)
	p.Ban = &ratelimit.Ban{Denials: 3, Within: time.Minute, For: 10 * time.Second, Max: 30 * time.Second}
	return p
}

// denyAll sends requests that the policy denies, which is not yet a ban.
func denyAll(t *testing.T, m *ratelimit.Middleware, n int) {
	t.Helper()
	for i := range n {
		if v := check(t, m, from("192.0.2.1")); v.Allowed || v.Policies[0].Banned {
			t.Fatalf("request %d: got %+v, want a denial and no ban", i+1, v)
		}
		synctest.Wait()
	}
}

// TestGrowingBans: a client that is denied too often is banned, for twice as long each time, and receives the wait to
// the microsecond.
func TestGrowingBans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := new(eventLog)
		m := newMiddleware(t, newMemory(t), &ratelimit.Options{Observers: []ratelimit.Observer{seen}}, banning("p", algorithms.TokenBucket(1, 24*time.Hour)))
		check(t, m, from("192.0.2.1"))
		for i, want := range []time.Duration{10, 20, 30, 30} {
			want *= time.Second
			denyAll(t, m, 3)
			for _, after := range []time.Duration{0, want / 2, want/2 - time.Microsecond} {
				time.Sleep(after)
				v := check(t, m, from("192.0.2.1"))
				if v.Allowed || !v.Policies[0].Banned || v.Status != http.StatusTooManyRequests {
					t.Fatalf("ban %d: got %+v, want it banned", i+1, v)
				}
				if got := v.Policies[0].Decision.RetryAfter; after == 0 && got != want {
					t.Errorf("ban %d: got a wait of %v, want %v", i+1, got, want)
				}
			}
			if got := seen.of(ratelimit.Banned); len(got) != i+1 || got[i].Policy != "p" || got[i].Elapsed != want {
				t.Errorf("ban %d: observed %+v", i+1, got)
			}
			time.Sleep(time.Microsecond)
		}
		time.Sleep(90 * time.Second) // two doublings are forgotten since the last ban began
		denyAll(t, m, 3)
		if v := check(t, m, from("192.0.2.1")); v.Policies[0].Decision.RetryAfter != 20*time.Second {
			t.Errorf("got %+v later, want a wait of 20s", v)
		}
	})
}

// TestBanBeginsBeforeNextRequest: over a Memory, a test that moves its clock after the last denial finds the ban in force.
func TestBanBeginsBeforeNextRequest(t *testing.T) {
	for range 50 { // a goroutine might count a denial in time
		now := time.Date(2027, 1, 31, 23, 0, 0, 0, time.UTC)
		p := byIP("p", algorithms.PerMonth(4, time.UTC))
		p.Ban = &ratelimit.Ban{Denials: 2, Within: time.Hour, For: 2 * time.Hour}
		h := newMiddleware(t, algorithms.NewMemory(&algorithms.MemoryOptions{Now: func() time.Time { return now }}), nil, p).Handler(ok)
		for i, want := range []int{200, 200, 200, 200, 429, 429} {
			if got := record(h, from("192.0.2.1")).Code; got != want {
				t.Fatalf("request %d: got %d, want %d", i+1, got, want)
			}
		}
		now = now.Add(time.Hour) // a new month, but the ban lasts for another hour
		if got := record(h, from("192.0.2.1")).Code; got != 429 {
			t.Fatalf("got %d during the ban, want 429", got)
		}
		now = now.Add(time.Hour)
		if got := record(h, from("192.0.2.1")).Code; got != 200 {
			t.Fatalf("got %d after the ban, want 200", got)
		}
	}
}

// TestBanOfOthers: a ban holds for one key and policy, on all instances.
func TestBanOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := newMemory(t)
		policies := []ratelimit.Policy{banning("p", hourly), byIP("other", algorithms.TokenBucket(100, time.Hour))}
		policies[0].Cost = func(r *http.Request) int64 { return r.ContentLength }
		here, there := newMiddleware(t, memory, nil, policies...), newMiddleware(t, memory, nil, policies...)
		greedy := from("192.0.2.1")
		greedy.ContentLength = 11
		for range 3 {
			check(t, here, greedy)
			synctest.Wait()
		}
		one := from("192.0.2.1")
		one.ContentLength = 1
		v := check(t, there, one)
		if v.Allowed || !v.Policies[0].Banned || v.Policies[1].Banned {
			t.Errorf("got %+v elsewhere, want it banned by the first policy", v)
		}
		if got := left(t, memory, policies[1], "ip=192.0.2.1"); got != 100 {
			t.Errorf("got %d left of the other policy, want all", got)
		}
		another := from("192.0.2.2")
		another.ContentLength = 1
		if v := check(t, there, another); !v.Allowed {
			t.Errorf("got %+v for another client, want it allowed", v)
		}
		time.Sleep(10 * time.Second)
		if v := check(t, there, one); !v.Allowed {
			t.Errorf("got %+v after the ban, want it allowed: there is enough left", v)
		}
	})
}

// TestBanIsAnswered as abnormal usage, with the wait.
func TestBanIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMiddleware(t, newMemory(t), nil, banning("p", algorithms.TokenBucket(1, 4*time.Second)))
		check(t, m, from("192.0.2.1"))
		denyAll(t, m, 3)
		w := record(m.Handler(ok), from("192.0.2.1"))
		const want = `{"type":"https://iana.org/assignments/http-problem-types#abnormal-usage-detected","title":"Abnormal Usage Detected","status":429,"violated-policies":["p"]}`
		if w.Code != 429 || w.Header().Get("Retry-After") != "10" || w.Body.String() != want {
			t.Errorf("got %d, Retry-After %q and %s, want 429, 10 and %s", w.Code, w.Header().Get("Retry-After"), w.Body, want)
		}
		if top := m.TopDenied("p", 1); len(top) != 1 || top[0].Denied != 4 {
			t.Errorf("got offenders %+v, want one of 4 denials", top)
		}
	})
}

// TestConsoleForgives: the console shows a ban, and ends it.
func TestConsoleForgives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMiddleware(t, newMemory(t), nil, banning("p", algorithms.TokenBucket(1, 2*time.Second)))
		other := newMiddleware(t, newMemory(t), nil, byIP("q", hourly))
		c, ctx, subject := console.New(other, m), context.Background(), console.Subject{Policy: "p", Key: "ip=192.0.2.1"}
		for i := range 2 { // it is the first ban again
			check(t, m, from("192.0.2.1"))
			denyAll(t, m, 3)
			if s := ratelimit.Must(c.Who(ctx, subject))[0]; s.Reason != console.ByBan || s.ClearsAfter != console.Wait(10*time.Second) {
				t.Fatalf("ban %d: got %v, want a ban of 10 s", i+1, s)
			}
			if _, err := c.Unban(ctx, subject); err != nil {
				t.Fatal(err)
			}
			if s := ratelimit.Must(c.Who(ctx, subject))[0]; s.Verdict != console.Denied || s.Reason != console.ByDefault {
				t.Errorf("forgiven: got %v, want what the limit says", s)
			}
			time.Sleep(2 * time.Second)
		}
		if s := ratelimit.Must(c.Who(ctx, console.Subject{Policy: "q", Key: "ip=192.0.2.1"}))[0]; s.Verdict != console.Admitted {
			t.Errorf("got %v of the other middleware, want it allowed", s)
		}
	})
}

// TestBanOnce: three simultaneous denials bring one ban, and denials during the ban bring none.
func TestBanOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := new(eventLog)
		memory := newMemory(t)
		slow := limiterFunc(func(ctx context.Context, checks []algorithms.Check) error {
			if checks[0].Op == algorithms.Reset {
				time.Sleep(ms) // there are strikes too many by then
			}
			return memory.Allow(ctx, checks)
		})
		m := newMiddleware(t, slow, &ratelimit.Options{Observers: []ratelimit.Observer{seen}}, banning("p", algorithms.Nobody()))
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { _, _ = m.Check(from("192.0.2.1")) })
		}
		all.Wait()
		time.Sleep(time.Second)
		for range 20 {
			check(t, m, from("192.0.2.1"))
			synctest.Wait()
		}
		if bans := seen.of(ratelimit.Banned); len(bans) != 1 {
			t.Errorf("got %d bans, want 1", len(bans))
		}
	})
}

// TestStrikesAreForgotten: denials that are spread bring no ban.
func TestStrikesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMiddleware(t, newMemory(t), nil, banning("p", algorithms.Nobody()))
		for range 10 {
			denyAll(t, m, 1)
			time.Sleep(31 * time.Second)
		}
	})
}

// TestNoBanWithoutDecision: an undecided request is no strike.
func TestNoBanWithoutDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		undecided := limiterFunc(func(_ context.Context, checks []algorithms.Check) error {
			for i := range checks {
				checks[i].Decision = algorithms.Decision{Allowed: checks[i].Fail == algorithms.FailOpen, Source: algorithms.Local}
				if checks[i].Fail == algorithms.FailOpen {
					checks[i].Decision.Source = algorithms.Undecided
				}
			}
			return nil
		})
		seen := new(eventLog)
		m := newMiddleware(t, undecided, &ratelimit.Options{Observers: []ratelimit.Observer{seen}, Logger: quiet}, banning("p", hourly))
		denyAll(t, m, 10)
		down := newMiddleware(t, broken(errDown), &ratelimit.Options{Observers: []ratelimit.Observer{seen}, Logger: quiet}, banning("p", hourly))
		if v, _ := down.Check(from("192.0.2.1")); !v.Allowed || v.Policies[0].Banned {
			t.Errorf("got %+v without a limiter, want it passed", v)
		}
		synctest.Wait()
		if bans := seen.of(ratelimit.Banned); len(bans) != 0 {
			t.Errorf("got %d bans, want none", len(bans))
		}
	})
}

// TestNoBanInTheShadow: a policy that an override makes a shadow denies and bans no client.
func TestNoBanInTheShadow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := overrides.NewMemory()
		if err := table.Set(context.Background(), "p", ratelimit.Everyone, ratelimit.Override{Mode: ratelimit.ModeShadow}); err != nil {
			t.Fatal(err)
		}
		m := newMiddleware(t, newMemory(t), &ratelimit.Options{Overrides: table}, banning("p", algorithms.Nobody()))
		for range 10 {
			if v := check(t, m, from("192.0.2.1")); !v.Allowed {
				t.Fatalf("got %+v, want it allowed", v)
			}
			synctest.Wait()
		}
		if err := table.Clear(context.Background(), "p", ratelimit.Everyone); err != nil {
			t.Fatal(err)
		}
		denyAll(t, m, 3)
	})
}

// TestLongestBan is one.
func TestLongestBan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, memory := banning("p", algorithms.Nobody()), newMemory(t)
		p.Ban = &ratelimit.Ban{Denials: 3, Within: time.Minute, For: 200 * 24 * time.Hour}
		m := newMiddleware(t, memory, nil, p)
		denyAll(t, m, 3)
		if v := check(t, m, from("192.0.2.1")); !v.Policies[0].Banned || v.Policies[0].Decision.RetryAfter != p.Ban.For {
			t.Errorf("got %+v, want a ban of 200 days", v)
		}
	})
}

// TestBanOfAnotherMax: debts are not comparable, and so they ban no key.
func TestBanOfAnotherMax(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := banning("p", algorithms.Nobody())
		m := newMiddleware(t, newMemory(t), nil, p)
		denyAll(t, m, 3)
		longer := *p.Ban
		longer.Max *= 2
		p.Ban = &longer
		if err := m.Update(p); err != nil {
			t.Fatal(err)
		}
		denyAll(t, m, 3)
		if v := check(t, m, from("192.0.2.1")); v.Policies[0].Decision.RetryAfter != 20*time.Second {
			t.Errorf("got %+v, want the second ban", v)
		}
	})
}

// TestBansThatNobodyCounts: without a count of earlier bans, there is no ban.
func TestBansThatNobodyCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, seen := newMemory(t), new(eventLog)
		partly := limiterFunc(func(ctx context.Context, checks []algorithms.Check) error {
			if checks[0].Policy == "p~bans" {
				checks[0].Decision = algorithms.Decision{Allowed: true}
				return nil
			}
			return memory.Allow(ctx, checks)
		})
		m := newMiddleware(t, partly, &ratelimit.Options{Observers: []ratelimit.Observer{seen}}, banning("p", algorithms.Nobody()))
		denyAll(t, m, 3)
		if bans := seen.of(ratelimit.Banned); len(bans) != 0 {
			t.Errorf("got bans %+v, want none", bans)
		}
	})
}

// TestUnbanOfTheUnseen: a ban that this instance has not read yet ends too, and another override stays.
func TestUnbanOfTheUnseen(t *testing.T) {
	ctx, table, subject := context.Background(), overrides.NewMemory(), console.Subject{Policy: "p", Key: "ip=192.0.2.1"}
	m := newMiddleware(t, newMemory(t), &ratelimit.Options{Overrides: late{table}}, banning("p", hourly))
	c := console.New(m)
	for _, tt := range []struct {
		o     ratelimit.Override
		stays bool
	}{{ratelimit.Override{Mode: ratelimit.ModeBanned}, false}, {ratelimit.Override{Mode: ratelimit.ModeOff}, true}} {
		if err := table.Set(ctx, "p", subject.Key, tt.o); err != nil {
			t.Fatal(err)
		}
		if lifted, err := c.Unban(ctx, subject); tt.stays != errors.Is(err, console.ErrNotFound) || tt.stays != (lifted == nil) {
			t.Errorf("%v: got %+v, %v, want ErrNotFound: %t", tt.o.Mode, lifted, err, tt.stays)
		}
		if _, found := table.Find("p", subject.Key); found != tt.stays {
			t.Errorf("%v: found %t afterwards, want %t", tt.o.Mode, found, tt.stays)
		}
	}
}

// late overrides are not seen yet.
type late struct{ *overrides.Memory }

func (late) Find(string, string) (ratelimit.Override, bool) { return ratelimit.Override{}, false }

// TestBanMistakes are all reported at once.
func TestBanMistakes(t *testing.T) {
	second := time.Second
	tests := map[string]struct {
		ban    ratelimit.Ban
		shadow bool
		want   []string
	}{
		"nothing":          {ratelimit.Ban{}, false, []string{"Denials is 0", "For is 0s"}},
		"all":              {ratelimit.Ban{Denials: 1001, For: second / 2, Max: second / 4}, true, []string{"Shadow and Ban", "Denials", "For", "Max"}},
		"of everybody":     {ratelimit.Ban{Denials: 3, Within: second, For: second}, false, []string{"Capacity and Ban"}},
		"no period":        {ratelimit.Ban{Denials: 3, For: second}, false, []string{"Within & window"}},
		"Max below For":    {ratelimit.Ban{Denials: 3, Within: second, For: 2 * second, Max: second}, false, []string{"Max is 1s"}},
		"Max of fractions": {ratelimit.Ban{Denials: 3, Within: second, For: second, Max: 2500 * ms}, false, []string{"Max is 2.5s"}},
		"twice too long":   {ratelimit.Ban{Denials: 3, Within: second, For: second, Max: 201 * 24 * time.Hour}, false, []string{"Max is 4824h0m0s"}},
		"for ever":         {ratelimit.Ban{Denials: 3, Within: second, For: 10_000 * time.Hour}, false, []string{"For is 10000h0m0s"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ratelimit.New(newMemory(t), nil, ratelimit.Policy{
				Name: "p", Key: keyfunc.IP(nil), Limit: hourly, Ban: &tt.ban, Shadow: tt.shadow, Capacity: name == "of everybody",
			})
			for i := range tt.want {
				tt.want[i] = `policy "p": ban & ` + tt.want[i]
			}
			checkLines(t, err, tt.want)
		})
	}
}

// TestBanWithCandidate: the candidate stays beside its policy's own limit.
func TestBanWithCandidate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &spy{Limiter: newMemory(t)}
		p, candidate := banning("p", hourly), algorithms.TokenBucket(20, time.Hour)
		p.Candidate = &candidate
		v := check(t, newMiddleware(t, l, nil, p), from("192.0.2.1"))
		if got := fmt.Sprint(strings.Fields(l.asked())); got != "[p~ban30:ip=192.0.2.1 p:ip=192.0.2.1 p~candidate:ip=192.0.2.1]" || len(v.Policies) != 1 {
			t.Errorf("asked %s for %d policies", got, len(v.Policies))
		}
	})
}
