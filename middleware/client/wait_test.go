// How long a Transport waits: never less than told, and not at all beyond its budget.

package client_test

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/middleware/client"
)

const date = "Date: Sat, 21 Nov 2026 12:00:00 GMT" // 1795262400

// waits are responses of a denial. The date of synctest's clock is 2000-01-01.
var waits = []struct {
	name  string
	lines []string
	want  time.Duration
}{
	{"seconds", []string{"Retry-After: 7"}, 7 * time.Second},
	{"IMF date", []string{"Date: Sat, 01 Jan 2000 00:00:00 GMT", "Retry-After: Sat, 01 Jan 2000 00:00:30 GMT"}, 30 * time.Second},
	{"RFC 850 date", []string{"Retry-After: Saturday, 01-Jan-00 00:00:30 GMT"}, 30 * time.Second},
	{"asctime date", []string{"Retry-After: Sat Jan  1 00:00:30 2000"}, 30 * time.Second},
	{"a server three hours ahead", []string{"Date: Sat, 01 Jan 2000 03:00:00 GMT", "Retry-After: Sat, 01 Jan 2000 03:00:30 GMT"}, 30 * time.Second},
	{"a date in the past", []string{"Retry-After: Fri, 31 Dec 1999 23:59:00 GMT"}, 0},
	{"zero", []string{"Retry-After: 0"}, 0},
	{"a fraction", []string{"Retry-After: 2.5"}, 3 * time.Second},
	{"two lines", []string{"Retry-After: 1", "Retry-After: 9"}, 9 * time.Second},
	{"folded lines", []string{"Retry-After: 0,120"}, 2 * time.Minute},
	{"Retry-After precedes RateLimit", []string{"Retry-After: 5", `RateLimit: "a";r=0;t=60`}, 5 * time.Second},
	{"draft 11", []string{`RateLimit: "a";r=3;t=50, "b";r=0;t=9`}, 9 * time.Second},
	{"the draft's next text", []string{`RateLimit: "a";a=0;w=9`}, 9 * time.Second},
	{"draft 07", []string{"RateLimit: limit=10, remaining=0, reset=9"}, 9 * time.Second},
	{"draft 06", []string{"RateLimit-Limit: 10", "RateLimit-Remaining: 0", "RateLimit-Reset: 9"}, 9 * time.Second},
	{"RateLimit precedes X-RateLimit", []string{`RateLimit: "a";r=0;t=9`, "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 60"}, 9 * time.Second},
	{"a Unix time", []string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1795262409", date}, 9 * time.Second},
	{"a Unix time in milliseconds", []string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1795262409000", date}, 9 * time.Second},
	{"a duration", []string{"X-RateLimit-Remaining-Requests: 0", "X-RateLimit-Reset-Requests: 1m30s"}, 90 * time.Second},
	{"RFC 3339", []string{"Anthropic-RateLimit-Requests-Remaining: 0", "Anthropic-RateLimit-Requests-Reset: 2000-01-01T00:00:09Z"}, 9 * time.Second},
	{"milliseconds", []string{"Retry-After-Ms: 2500"}, 2500 * time.Millisecond},
	{"nothing", nil, 0},
	{"malformed", []string{"Retry-After: soon", `RateLimit: "a`}, 0},
}

// TestWaits: a real server speaks each dialect and has each defect.
func TestWaits(t *testing.T) {
	for _, tt := range waits {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var arrived []time.Time
				transport := newTransport(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
					arrived = append(arrived, time.Now())
					if len(arrived) < 3 {
						copyHeader(w.Header(), response(0, tt.lines...).Header)
						w.WriteHeader(http.StatusTooManyRequests)
					}
				}), &client.Options{Attempts: 3})
				resp := send(t, transport, get(t, context.Background()))
				if resp.StatusCode != http.StatusOK || len(arrived) != 3 {
					t.Fatalf("got %d after %d requests", resp.StatusCode, len(arrived))
				}
				// A date without a Date of its own has passed when the second denial is sent.
				first, second := arrived[1].Sub(arrived[0]), arrived[2].Sub(arrived[1])
				least, most := tt.want, tt.want+min(tt.want/10, time.Second)
				if tt.want == 0 {
					least, most = 850*time.Millisecond, 1250*time.Millisecond
				}
				if first < least || first > most || second > max(most, 2*time.Second) {
					t.Errorf("got the waits %v and %v, want %v to %v", first, second, least, most)
				}
			})
		})
	}
}

// TestHints: RetryAfter returns the wait that a response states.
func TestHints(t *testing.T) {
	for _, tt := range waits {
		synctest.Test(t, func(t *testing.T) {
			wait, ok := client.RetryAfter(response(http.StatusServiceUnavailable, tt.lines...))
			if stated := tt.name != "nothing" && tt.name != "malformed"; wait != tt.want || ok != stated {
				t.Errorf("%s: got %v, %v, want %v", tt.name, wait, ok, tt.want)
			}
		})
	}
}

// TestBackoff: without a statement, the waits are about 1 s and double up to 30 s. A 429 holds all requests, and the waits
// grow by half.
func TestBackoff(t *testing.T) {
	for status, growth := range map[int]float64{http.StatusServiceUnavailable: 2, http.StatusTooManyRequests: 1.5} {
		synctest.Test(t, func(t *testing.T) {
			const attempts = 12
			shortest, longest := slices.Repeat([]time.Duration{time.Hour}, attempts-1), make([]time.Duration, attempts-1)
			for range 200 {
				s := &script{}
				for range attempts {
					s.responses = append(s.responses, response(status))
				}
				transport := newTransport(t, s, &client.Options{Attempts: attempts, MaxWait: time.Hour})
				send(t, transport, get(t, context.Background()))
				for i, gap := range s.gaps() {
					shortest[i], longest[i] = min(shortest[i], gap), max(longest[i], gap)
				}
			}
			for i := range longest {
				wait := min(math.Pow(growth, float64(i)), 30)
				least, most := shortest[i].Seconds()/wait, longest[i].Seconds()/wait
				if least < 0.849 || least > 0.88 || most < 1.22 || most > 1.251 {
					t.Errorf("%d, retry %d: got %v to %v, want %v to %v s", status, i+1, shortest[i], longest[i], wait*0.85, wait*1.25)
				}
			}
		})
	}
}

// TestJitterDoesNotGrow: beside a stated wait, the random part is below a tenth and at most a second, at each attempt.
func TestJitterDoesNotGrow(t *testing.T) {
	for stated, most := range map[string]time.Duration{"2": 200 * time.Millisecond, "60": time.Second} {
		synctest.Test(t, func(t *testing.T) {
			wait, _ := time.ParseDuration(stated + "s") // it is one
			longest := time.Duration(0)
			for range 100 {
				s := denials(6, "Retry-After: "+stated)
				send(t, newTransport(t, s, nil), get(t, context.Background()))
				for _, gap := range s.gaps() {
					if longest = max(longest, gap-wait); gap < wait || gap > wait+most {
						t.Fatalf("waited %v, want %v and at most %v", gap, wait, most)
					}
				}
			}
			if longest < most*9/10 {
				t.Errorf("the longest random part is %v, want nearly %v", longest, most)
			}
		})
	}
}

// TestPatience: how long the zero Options retry.
func TestPatience(t *testing.T) {
	for _, tt := range []struct {
		name        string
		resp        func() *http.Response
		o           client.Options
		least, most time.Duration
		reason      string
	}{
		{"429", func() *http.Response { return response(429) }, client.Options{}, 9 * time.Minute, 10 * time.Minute, "wait"},
		{"503", func() *http.Response { return response(503) }, client.Options{}, 80 * time.Second, 2 * time.Minute, "wait"},
		{"503, Pace", func() *http.Response { return response(503) }, client.Options{Pace: true}, 80 * time.Second, 3 * time.Minute, "wait"},
		{"503 with a wait", func() *http.Response { return response(503, "Retry-After: 5") }, client.Options{}, 9 * time.Minute, 10 * time.Minute, "wait"},
		{"MaxWait", func() *http.Response { return response(429) }, client.Options{MaxWait: time.Minute}, 30 * time.Second, time.Minute, "wait"},
		{"Attempts", func() *http.Response { return response(503) }, client.Options{Attempts: 11}, 2*time.Minute + 1, 5 * time.Minute, "attempts"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				events := &eventLog{}
				tt.o.Observers = []client.Observer{events}
				transport := newTransport(t, roundTripper(func(*http.Request) (*http.Response, error) {
					resp := tt.resp()
					resp.Body = http.NoBody
					return resp, nil
				}), &tt.o)
				begun := time.Now()
				resp := send(t, transport, get(t, context.Background()))
				last := events.events[len(events.events)-1]
				if took := time.Since(begun); took < tt.least || took > tt.most || resp.StatusCode < 429 || last.Kind != client.GaveUp || last.Reason != tt.reason {
					t.Errorf("got %d after %v, %v %s, want %v to %v, %s", resp.StatusCode, took, last.Kind, last.Reason, tt.least, tt.most, tt.reason)
				}
			})
		})
	}
}

// TestGivesUpAtOnce: beyond the budget, the denial is returned at once, and unread.
func TestGivesUpAtOnce(t *testing.T) {
	tests := []struct {
		name    string
		lines   []string
		maxWait time.Duration
		within  time.Duration // of the context; 0: no deadline
	}{
		{"MaxWait's default", []string{"Retry-After: 601"}, 0, 0},
		{"MaxWait", []string{"Retry-After: 6"}, 5 * time.Second, 0},
		{"deadline", []string{"Retry-After: 6"}, 0, 5 * time.Second},
		{"overflowing seconds", []string{"Retry-After: 9223372037"}, 0, 0},
		{"23 digits", []string{"Retry-After: 99999999999999999999999"}, 0, 0},
		{"a date in years", []string{"Retry-After: Fri, 01 Jan 2100 00:00:00 GMT"}, 0, 0},
		{"a long window", []string{`RateLimit: "a";r=0;t=999999999999999`}, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, events := denials(1, tt.lines...), &eventLog{}
				transport := newTransport(t, s, &client.Options{MaxWait: tt.maxWait, Observers: []client.Observer{events}})
				ctx, cancel := context.WithCancel(context.Background())
				if tt.within > 0 {
					ctx, cancel = context.WithTimeout(ctx, tt.within)
				}
				defer cancel()
				begun := time.Now()
				resp, err := transport.RoundTrip(get(t, ctx))
				if err != nil || resp.StatusCode != http.StatusTooManyRequests || time.Since(begun) > 0 {
					t.Fatalf("got %v, %v after %v", resp, err, time.Since(begun))
				}
				if wait, ok := client.RetryAfter(resp); !ok || wait < 6*time.Second {
					t.Errorf("got the hint %v, %v", wait, ok)
				}
				if text, err := io.ReadAll(resp.Body); string(text) != "the body" || err != nil {
					t.Errorf("got the body %q, %v", text, err)
				}
				if got := events.kinds(); got != "registered sent gave_up_wait" {
					t.Errorf("got %s", got)
				}
			})
		})
	}
}

// TestWaitBeginsWithTheArrival: the time of a slow response is not part of the wait.
func TestWaitBeginsWithTheArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := denials(1, "Retry-After: 5")
		transport := newTransport(t, roundTripper(func(req *http.Request) (*http.Response, error) {
			resp, err := s.RoundTrip(req)
			time.Sleep(3 * time.Second)
			return resp, err
		}), nil)
		send(t, transport, get(t, context.Background()))
		if gaps := s.gaps(); gaps[0] < 8*time.Second {
			t.Errorf("came back %v after the request, want 3 s and 5 s", gaps[0])
		}
	})
}

// TestBudgetIsOfAllWaits: MaxWait bounds the sum of the waits of a request.
func TestBudgetIsOfAllWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := denials(9, "Retry-After: 10")
		transport := newTransport(t, s, &client.Options{MaxWait: 25 * time.Second, Attempts: 9})
		if resp := send(t, transport, get(t, context.Background())); resp.StatusCode != http.StatusTooManyRequests || len(s.arrived) != 3 {
			t.Errorf("got %d after %d requests, want 429 after 3", resp.StatusCode, len(s.arrived))
		}
	})
}

// TestCancelledWait: a wait ends with its context.
func TestCancelledWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := denials(1, "Retry-After: 60")
		transport := newTransport(t, s, nil)
		cause := errors.New("the caller left")
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(7*time.Second, func() { cancel(cause) })
		begun := time.Now()
		req, rewound := get(t, ctx), &body{Reader: strings.NewReader("again")}
		req.Body = io.NopCloser(strings.NewReader("once"))
		req.GetBody = func() (io.ReadCloser, error) { return rewound, nil }
		resp, err := transport.RoundTrip(req)
		if resp != nil || !errors.Is(err, cause) || time.Since(begun) != 7*time.Second {
			t.Errorf("got %v, %v after %v", resp, err, time.Since(begun))
		}
		if rewound.closed == 0 || rewound.read > 0 {
			t.Errorf("the body of the next attempt: closed %d times, %d bytes read", rewound.closed, rewound.read)
		}
	})
}

// TestRandomPartLeavesTime: the random part of a backoff uses at most half of the rest of the
// budget.
func TestRandomPartLeavesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			s := &script{responses: []*http.Response{response(http.StatusServiceUnavailable)}}
			ctx, cancel := context.WithTimeout(context.Background(), 950*time.Millisecond)
			resp := send(t, newTransport(t, s, nil), get(t, ctx))
			cancel()
			if gaps := s.gaps(); resp.StatusCode != http.StatusOK || gaps[0] > 900*time.Millisecond {
				t.Fatalf("got %d after %v", resp.StatusCode, gaps)
			}
		}
	})
}

func TestRetryAfterOfNothing(t *testing.T) {
	for _, resp := range []*http.Response{nil, {}, response(http.StatusOK, "Retry-After: 5"), response(http.StatusTooManyRequests)} {
		if wait, ok := client.RetryAfter(resp); wait != 0 || ok {
			t.Errorf("%v: got %v, %v", resp, wait, ok)
		}
	}
}
