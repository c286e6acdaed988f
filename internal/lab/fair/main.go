// Command fair runs nine modest tenants beside one that asks for many times the capacity, with and without Policy.ShareBy,
// and writes a table and a picture. Memory runs in simulated time; Redis, with four instances, in real time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/redistest"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

const (
	capacity = 100 // per second
	minute   = 60  // seconds of a run, after one that is not counted
)

// A scene is what tenants ask for: the first ones are modest, the last one is the hog, unless all are alike.
type scene struct {
	name    string
	rates   []int // requests per second
	weights []int // by tenant, repeated
	sticky  bool  // each tenant has one instance
}

var alike = []int{1}

func nine(each, hog int) []int { return append(slices.Repeat([]int{each}, 9), hog) }

var scenes = []scene{
	{name: "nine ask for 5/s, one for 1 000/s", rates: nine(5, 1_000), weights: alike},
	{name: "nine ask for 5/s, one for 5 000/s", rates: nine(5, 5_000), weights: alike},
	{name: "nine ask for 20/s, one for 1 000/s", rates: nine(20, 1_000), weights: alike},
	{name: "six ask for 200/s, with weights 1, 2, 5, 1, 2, 5", rates: slices.Repeat([]int{200}, 6), weights: []int{1, 2, 5}},
}

// A result is what the tenants asked for and were given.
type result struct {
	asked, got []int
	seconds    [minute][2]int // of the modest ones and of the last, by second
}

type tenantKey struct{}

// policy is the capacity, with shares or without.
func policy(fair bool) ratelimit.Policy {
	p := ratelimit.Policy{Name: "capacity", Key: keyfunc.Const("all"), Capacity: true, Limit: algorithms.TokenBucket(capacity, time.Second)}
	if fair {
		p.ShareBy = keyfunc.User(func(ctx context.Context) (keyfunc.Identity, bool) {
			return ctx.Value(tenantKey{}).(keyfunc.Identity), true
		})
		p.Weights = map[string]int64{"1": 1, "2": 2, "5": 5}
	}
	return p
}

// request returns a request of a tenant.
func (s *scene) request(tenant int) *http.Request {
	id := keyfunc.Identity{ID: strconv.Itoa(tenant), Tier: strconv.Itoa(s.weight(tenant))}
	r, _ := http.NewRequestWithContext(context.WithValue(context.Background(), tenantKey{}, id), http.MethodGet, "/", nil)
	return r
}

func (s *scene) weight(tenant int) int { return s.weights[tenant%len(s.weights)] }

// simulated runs a scene in one instance, with Memory.
func (s *scene) simulated(t *testing.T, fair bool) (r result) {
	synctest.Test(t, func(*testing.T) {
		m := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), nil, policy(fair)))
		s.run(&r, []*ratelimit.Middleware{m})
	})
	return r
}

// real runs a scene in four instances, with Redis.
func (s *scene) real(t *testing.T, fair bool) (r result) {
	server := redistest.Start(t)
	var all []*ratelimit.Middleware
	for range 4 {
		client := redis.NewClient(&redis.Options{Addr: server.Addr()})
		defer client.Close()
		limiter := ratelimit.Must(shared.New(client, &shared.Options{Deadline: time.Second, Instances: 4}))
		defer limiter.Close()
		all = append(all, ratelimit.Must(ratelimit.New(limiter, nil, policy(fair))))
	}
	s.run(&r, all)
	return r
}

// run sends the requests of a scene, as a Poisson process. A request does not wait for the one before it.
func (s *scene) run(r *result, instances []*ratelimit.Middleware) {
	rnd, total := rand.New(rand.NewPCG(1, 1)), 0
	for _, rate := range s.rates {
		total += rate
	}
	r.asked, r.got = make([]int, len(s.rates)), make([]int, len(s.rates))
	var all sync.WaitGroup
	defer all.Wait()
	var mu sync.Mutex // guards r
	begin, next := time.Now(), time.Duration(0)
	for {
		next += time.Duration(rnd.ExpFloat64() * float64(time.Second) / float64(total))
		time.Sleep(time.Until(begin.Add(next)))
		second := int(next/time.Second) - 1
		if second >= minute {
			return
		}
		n, tenant := rnd.IntN(total), 0
		for n >= s.rates[tenant] {
			n -= s.rates[tenant]
			tenant++
		}
		instance := instances[rnd.IntN(len(instances))]
		if s.sticky {
			instance = instances[tenant%len(instances)]
		}
		all.Go(func() {
			v, err := instance.Check(s.request(tenant))
			if err != nil {
				panic(err)
			}
			if second < 0 {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if r.asked[tenant]++; v.Allowed {
				r.got[tenant]++
				r.seconds[second][tenant/(len(s.rates)-1)]++
			}
		})
	}
}

// jain returns Jain's index of what tenants got, by weight: 1 if all have the same, 1/n if one has all.
func (s *scene) jain(r *result) float64 {
	sum, squares := 0.0, 0.0
	for i, n := range r.got {
		x := float64(n) / float64(s.weight(i))
		sum, squares = sum+x, squares+x*x
	}
	return sum * sum / (float64(len(r.got)) * squares)
}

// row returns a row of the table.
func (s *scene) row(limiter, kind string, r *result) string {
	last := len(r.got) - 1
	asked, got, least := 0, 0, r.got[0]
	for i, n := range r.got[:last] {
		asked, got, least = asked+r.asked[i], got+n, min(least, n)
	}
	return fmt.Sprintf("| %s | %s | %s | %.1f %% | %.1f/s | %.1f/s | %.1f/s | %.3f |\n", s.name, limiter, kind, 100*float64(got)/float64(asked),
		float64(least)/minute, float64(r.got[last])/minute, float64(got+r.got[last])/minute, s.jain(r))
}

// page runs all scenes, and returns the page and the picture.
func page(t *testing.T) (text, svg string) {
	var b strings.Builder
	b.WriteString(head)
	var shown [2]result
	for i := range scenes {
		for fair, kind := range []string{"first come, first served", "**shares**"} {
			r := scenes[i].simulated(t, fair == 1)
			b.WriteString(scenes[i].row("Memory", kind, &r))
			if i == 0 {
				shown[fair] = r
			}
		}
	}
	through := []scene{scenes[0], scenes[2], scenes[2]}
	through[2].name, through[2].sticky = through[2].name+"; each tenant has one instance", true
	for _, s := range through {
		r := s.real(t, true)
		b.WriteString(s.row("Redis, 4 instances", "**shares**", &r))
	}
	return b.String(), picture(&shown)
}

const head = `# Tenants beside one that asks for everything

` + "`make fair`" + ` wrote this page. A capacity of 100/s, with a burst of 100, is shared for a minute. Memory ran in simulated time, Redis in real time.
*Served* is the part of their requests that all tenants but the last were served. *Least* is the rate of the one of them that got least, *last* the
rate of the last tenant, and *all* the rate of all. Jain's index is 1 if all tenants have the same by weight; it says nothing where tenants ask for
less than their shares.

![Requests served in each second, without shares and with them](fair.svg)

| Scene | Limiter | Kind | Served | Least | Last | All | Jain's index |
|---|---|---|---|---|---|---|---|
`

// main runs as a test does, because only a test can have a bubble of synctest.
func main() {
	folder := flag.String("o", ".", "the `folder` for fair.svg and RESULTS.md")
	fair := testing.InternalTest{Name: "fair", F: func(t *testing.T) {
		text, svg := page(t)
		err := errors.Join(os.WriteFile(filepath.Join(*folder, "RESULTS.md"), []byte(text), 0o644), os.WriteFile(filepath.Join(*folder, "fair.svg"), []byte(svg), 0o644))
		if err != nil {
			t.Error(err)
		}
	}}
	testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{fair}, nil, nil)
}
