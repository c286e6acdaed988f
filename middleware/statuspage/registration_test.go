// Tests of the Middlewares, policies and limiters on the page.

package statuspage_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/statuspage"
)

// TestRegistration: the page shows a Middleware from New to Close, with the policies of the last Update.
func TestRegistration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, memory := statuspage.New(nil), algorithms.NewMemory(nil)
		one := shownOn(t, page, memory, ratelimit.Options{}, byIP("a", hourly), byIP("b", hourly))
		two := shownOn(t, page, memory, ratelimit.Options{LimiterName: "late"}, byIP("c", hourly))
		want := func(policies, limiters []string) {
			t.Helper()
			time.Sleep(time.Second) // until then, the page stays the same
			if v := look(t, page); !slices.Equal(v.policies(), policies) || !slices.Equal(v.limiters(), limiters) {
				t.Errorf("got policies %v and limiters %v, want %v and %v", v.policies(), v.limiters(), policies, limiters)
			}
		}
		want([]string{"a", "b", "c"}, []string{"memory"})

		record(one.Handler(ok), from("192.0.2.1"))
		if err := one.Update(byIP("d", hourly), byIP("a", hourly)); err != nil {
			t.Fatal(err)
		}
		want([]string{"d", "a", "c"}, []string{"memory"})
		if p := look(t, page).Policies; p[0].Requests != 0 || p[1].Requests != 1 {
			t.Errorf("got %+v, want that the policy which stays keeps its count", p)
		}
		if err := one.Update(byIP("", hourly)); err == nil {
			t.Error("got no error of a policy without a name")
		}
		want([]string{"d", "a", "c"}, []string{"memory"})

		for range 2 { // the second time changes nothing
			if err := one.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			record(one.Handler(ok), from("192.0.2.1"))
			want([]string{"c"}, []string{"late"})
		}
		if err := two.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		want(nil, nil)
	})
}

// uncomparable is a limiter whose values panic when they are compared.
type uncomparable struct {
	algorithms.Limiter
	_ []int
}

func (uncomparable) Stats() algorithms.Stats { return algorithms.Stats{} }

// mixed is a limiter whose type can be compared, although not all its values can.
type mixed struct{ algorithms.Limiter }

func (mixed) Stats() algorithms.Stats { return algorithms.Stats{} }

// TestLimiters: each limiter is shown once, by the Stats of the limiter itself or of the limiter that it wraps.
func TestLimiters(t *testing.T) {
	memory, odd := algorithms.NewMemory(nil), limiterFunc(algorithms.NewMemory(nil).Allow)
	for _, tt := range []struct {
		name     string
		limiters []algorithms.Limiter
		want     int
	}{
		{"shared", []algorithms.Limiter{memory, memory}, 1},
		{"two", []algorithms.Limiter{memory, algorithms.NewMemory(nil)}, 2},
		{"wrapped", []algorithms.Limiter{wrapper{memory}, memory, wrapper{wrapper{memory}}}, 1},
		{"a wrapper around nothing", []algorithms.Limiter{wrapper{odd}}, 0},
		{"without Stats", []algorithms.Limiter{odd, memory}, 1},
		{"uncomparable", []algorithms.Limiter{uncomparable{Limiter: memory}, uncomparable{Limiter: memory}}, 2},
		{"comparable values", []algorithms.Limiter{mixed{memory}, mixed{memory}}, 1},
		{"uncomparable values", []algorithms.Limiter{mixed{odd}, mixed{odd}, mixed{memory}}, 3},
	} {
		page := statuspage.New(nil)
		for i, l := range tt.limiters {
			m := shownOn(t, page, l, ratelimit.Options{}, byIP(fmt.Sprint("p", i), hourly))
			if err := m.Update(byIP(fmt.Sprint("p", i), hourly)); err != nil { // registers again
				t.Fatal(err)
			}
		}
		if got := look(t, page).limiters(); len(got) != tt.want {
			t.Errorf("%s: got limiters %v, want %d", tt.name, got, tt.want)
		}
	}
}

// TestPoliciesOfOneName: equal policies of several Middlewares are one row, and different policies are not.
func TestPoliciesOfOneName(t *testing.T) {
	page := statuspage.New(nil)
	none := byIP("p", algorithms.Nobody())
	plain := ratelimit.Options{PlainKeys: true}
	one := shownOn(t, page, algorithms.NewMemory(nil), plain, none)
	two := shownOn(t, page, algorithms.NewMemory(nil), plain, none)
	other := shownOn(t, page, algorithms.NewMemory(nil), ratelimit.Options{}, byIP("p", hourly))
	for m, n := range map[*ratelimit.Middleware]int{one: 3, two: 4, other: 1} {
		for range n {
			record(m.Handler(ok), from("192.0.2.1"))
		}
	}
	record(two.Handler(ok), from("192.0.2.2"))

	v := look(t, page)
	p := v.Policies
	if len(p) != 2 || p[0].Outcomes["denied"] != 8 || p[0].Requests != 8 || p[1].Outcomes["allowed"] != 1 || p[1].Requests != 1 {
		t.Fatalf("got %+v, want 8 denied requests, and 1 allowed request of the other policy", p)
	}
	if c := v.Clients; len(c) != 2 || len(c[0].Keys) != 1 || c[0].Keys[0].Key != "ip=192.0.2.1" || c[0].Keys[0].Denied != 7 || c[1].Denied != 1 || c[0].Of != 8 || c[1].Of != 8 {
		t.Errorf("got clients %+v, want 7 and 1 of 8 denials", c)
	}
}

// TestConcurrency: Middlewares come and go while requests are decided and the page is read.
func TestConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, memory := statuspage.New(nil), algorithms.NewMemory(nil)
		stays := shownOn(t, page, memory, ratelimit.Options{}, byIP("stays", algorithms.TokenBucket(1e6, time.Second)))
		const goroutines, each = 4, 100
		var wg sync.WaitGroup
		for g := range goroutines {
			wg.Go(func() {
				for i := range each {
					m := shownOn(t, page, memory, ratelimit.Options{}, byIP(fmt.Sprint("p", g), hourly))
					record(m.Handler(ok), from("192.0.2.1"))
					record(stays.Handler(ok), from("192.0.2.1"))
					if err := m.Update(byIP(fmt.Sprint("q", g), hourly)); err != nil {
						t.Error(err)
					}
					if i%10 == 0 {
						time.Sleep(time.Second)
						look(t, page)
					}
					if err := m.Close(context.Background()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Second)
		v := look(t, page)
		if len(v.Policies) != 1 || v.Policies[0].Outcomes["allowed"] != goroutines*each || len(v.Limiters) != 1 {
			t.Errorf("got %+v, want the requests of the Middleware that stays", v)
		}
	})
}
