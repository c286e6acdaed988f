// Tests of the waits that denied clients learn.

package tests

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// TestHiddenLoginsTellTheTrueWait: the first denials of a hidden policy that counts one account all tell when its log
// forgets the first failure.
func TestHiddenLoginsTellTheTrueWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newMiddleware(t, newMemory(t), nil, ratelimit.Policy{
			Name: "logins", Key: keyfunc.Custom("account", func(*http.Request) (string, error) { return "alice", nil }),
			Limit: algorithms.SlidingWindowLog(5, 10*time.Minute), Hidden: true,
			ChargeIf: func(status int) bool { return status == http.StatusUnauthorized },
		}).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
		for range 5 {
			if w := record(h, from("192.0.2.1")); w.Code != http.StatusUnauthorized {
				t.Fatalf("got %d, want 401", w.Code)
			}
		}
		for i := range 5 {
			if got := tell(t, h, from(nth(i))); got != 600 {
				t.Errorf("denial %d: got %d s, want 600", i, got)
			}
		}
	})
}

// TestConcurrentTellsTheMedian: a denied client learns how long the last sixteen requests took, from 1 s up to the hold.
func TestConcurrentTellsTheMedian(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := byIP("streams", algorithms.Concurrent(2, 30*time.Second))
		seen := new(eventLog)
		m := newMiddleware(t, newMemory(t), &ratelimit.Options{Observers: []ratelimit.Observer{seen}}, p)
		s := newStreams(m)
		run := func(length time.Duration, times int) {
			for range times {
				if got := s.begin("a"); got != http.StatusOK {
					t.Fatalf("got %d, want 200", got)
				}
				time.Sleep(length)
				s.stop("a")
			}
		}
		want := func(what string, seconds int) {
			t.Helper()
			s.begin("b")
			s.begin("c")
			if got := tell(t, s, from("192.0.2.1")); got != seconds {
				t.Errorf("%s: got %d s, want %d", what, got, seconds)
			}
			decided := seen.of(ratelimit.Decided)
			v := decided[len(decided)-1].Verdict
			if d := v.Policies[0].Decision; v.RetryAfter != time.Duration(seconds)*time.Second || d.RetryAfter != v.RetryAfter {
				t.Errorf("%s: got a verdict of %v and %v, want %d s", what, v.RetryAfter, d.RetryAfter, seconds)
			}
			s.stop("b")
			s.stop("c")
		}
		want("before any request has ended", 30)
		run(2*time.Second, 16)
		want("after streams of 2 s", 2)
		run(time.Millisecond, 14) // two more ended at once, in the step before
		want("after many short ones", 1)
		if err := m.Update(p); err != nil {
			t.Fatal(err)
		}
		want("after an Update", 1)
		run(10*time.Minute, 12)
		want("after streams that outlast the hold", 30)
		s.wg.Wait()
	})
}

// TestConcurrentIsNamed: a denial names a Concurrent limit, also a hidden one, and no other hidden policy.
func TestConcurrentIsNamed(t *testing.T) {
	nobody := ratelimit.Policy{Name: "secret", Limit: algorithms.Nobody(), Hidden: true}
	streams := ratelimit.Policy{Name: "streams", Limit: algorithms.Concurrent(1, time.Minute), Hidden: true}
	capacity := streams
	capacity.Capacity = true
	for name, tt := range map[string]struct {
		policies []ratelimit.Policy
		want     string
	}{
		"hidden, concurrent":   {[]ratelimit.Policy{streams}, `"violated-policies":["streams"]`},
		"capacity, concurrent": {[]ratelimit.Policy{capacity}, `"violated-policies":["streams"]`},
		"beside another":       {[]ratelimit.Policy{streams, nobody}, `"violated-policies":["streams"]`},
		"hidden":               {[]ratelimit.Policy{nobody}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			memory := newStill(t)
			held := []algorithms.Check{{Policy: "streams", Key: "ip=192.0.2.1", Limit: streams.Limit, Cost: 1}}
			if err := memory.Allow(context.Background(), held); err != nil {
				t.Fatal(err)
			}
			w := record(newMiddleware(t, memory, nil, tt.policies...).Handler(ok), from("192.0.2.1"))
			body := w.Body.String()
			if tt.want == "" && strings.Contains(body, "violated-policies") || !strings.Contains(body, tt.want) {
				t.Errorf("got %s, want %q", body, tt.want)
			}
			if got := w.Header().Get("RateLimit-Policy"); got != "" {
				t.Errorf("got RateLimit-Policy %q of hidden policies, want none", got)
			}
		})
	}
}

// TestConcurrentCandidate: its holds end with their requests, and do not count towards the median of the limit.
func TestConcurrentCandidate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen, p := new(eventLog), byIP("p", plenty)
		two := algorithms.Concurrent(2, 30*time.Second)
		p.Candidate = &two
		h := newMiddleware(t, newMemory(t), &ratelimit.Options{Observers: []ratelimit.Observer{seen}}, p).Handler(ok)
		for range 6 {
			record(h, from("192.0.2.1"))
		}
		if got := seen.of(ratelimit.Diverged); len(got) != 0 {
			t.Errorf("got %d requests in a row that the candidate would deny, want none", len(got))
		}

		one := algorithms.Concurrent(1, 30*time.Second)
		both := byIP("both", one)
		both.Candidate = &one
		s := newStreams(newMiddleware(t, newMemory(t), nil, both))
		for i := range 15 {
			s.begin("a")
			time.Sleep(map[bool]time.Duration{true: 20 * time.Second, false: 2 * time.Second}[i < 8])
			s.stop("a")
		}
		s.begin("a")
		if got := tell(t, s, from("192.0.2.1")); got != 20 {
			t.Errorf("got %d s after 8 streams of 20 s and 7 of 2 s, want 20", got)
		}
		s.stop("a")
		s.wg.Wait()
	})
}
