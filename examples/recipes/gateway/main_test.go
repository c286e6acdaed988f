package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
)

// A gateway of a test has one organisation, whose state it can read.
type gateway struct {
	http.Handler
	memory *algorithms.Memory
}

func newGateway(t *testing.T, ask model) gateway {
	memory := algorithms.NewMemory(nil)
	limited, err := limits(memory, func(context.Context, string) (keyfunc.Identity, error) { return keyfunc.Identity{ID: "acme"}, nil })
	if err != nil {
		t.Fatal(err)
	}
	return gateway{read(limited.Handler(complete(ask))), memory}
}

func (g gateway) send(ctx context.Context, w http.ResponseWriter, maxTokens int64) {
	r := httptest.NewRequestWithContext(ctx, "POST", "/v1/completions", strings.NewReader(fmt.Sprintf(`{"prompt":"","max_tokens":%d}`, maxTokens)))
	r.Header.Set("Authorization", "Bearer key")
	g.ServeHTTP(w, r)
}

// wants checks what is left of tokens, of the budget and of the streams. The budget has the price of so many tokens.
func (g gateway) wants(t *testing.T, when string, tokens, budget, streams int64) {
	t.Helper()
	synctest.Wait() // for settlements
	checks := []algorithms.Check{
		{Policy: "tokens", Key: "usr=acme", Limit: algorithms.TokenBucket(100_000, time.Minute)},
		{Policy: "budget", Key: "usr=acme", Limit: algorithms.PerMonth(5_000*dollar, nil)},
		{Policy: "streams", Key: "usr=acme", Limit: algorithms.Concurrent(20, 30*time.Second)},
	}
	if err := g.memory.Allow(context.Background(), checks); err != nil {
		t.Fatal(err)
	}
	got := [3]int64{checks[0].Decision.Remaining, checks[1].Decision.Remaining, checks[2].Decision.Remaining}
	if want := [3]int64{100_000 - tokens, 5_000*dollar - price(budget), 20 - streams}; got != want {
		t.Errorf("%s: got %v left of tokens, budget and streams, want %v", when, got, want)
	}
}

// stream yields the totals one by one, and waits before each until next says so.
func stream(next <-chan bool, totals ...int64) model {
	return func(ctx context.Context, _ string, _ int64) iter.Seq2[string, int64] {
		return func(yield func(string, int64) bool) {
			for _, used := range totals {
				select {
				case <-next:
				case <-ctx.Done():
					return
				}
				if !yield("text", used) {
					return
				}
			}
		}
	}
}

// membrane/api-gateway#3210: requests at once each saw the whole budget, and spent a multiple of it.
func TestRequestsAtOnceCannotOverspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := make(chan bool)
		g := newGateway(t, stream(next, 8_000))
		var wg sync.WaitGroup
		var served, denied atomic.Int64
		for range 40 {
			wg.Go(func() {
				w := httptest.NewRecorder()
				g.send(t.Context(), w, 8_000)
				if w.Code == 200 {
					served.Add(1)
				} else if w.Code == 429 {
					denied.Add(1)
				}
			})
		}
		synctest.Wait()
		g.wants(t, "while they run", 12*8_000, 12*8_000, 12)
		close(next)
		wg.Wait()
		if served.Load() != 12 || denied.Load() != 28 {
			t.Errorf("got %d served and %d denied, want 12 and 28: 100 000 tokens hold 12 reservations", served.Load(), denied.Load())
		}
		g.wants(t, "afterwards", 12*8_000, 12*8_000, 0)
	})
}

// envoyproxy/ai-gateway#2394: tokens of a stream counted only after its end. Here they are reserved before it begins, what
// exceeds the reservation is charged while it runs, and the rest comes back at its end.
func TestStreamsCountWhileTheyRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := make(chan bool)
		g := newGateway(t, stream(next, 100, 300, 1_500))
		done := make(chan bool)
		go func() {
			g.send(t.Context(), httptest.NewRecorder(), 1_000)
			close(done)
		}()
		g.wants(t, "at the begin", 1_000, 1_000, 1)
		next <- true
		next <- true
		g.wants(t, "after 300 tokens", 1_000, 1_000, 1)
		next <- true // the model has ignored max_tokens
		<-done
		g.wants(t, "after 1 500 tokens", 1_500, 1_500, 0)
	})
}

func TestTheRestComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := make(chan bool)
		close(next)
		g := newGateway(t, stream(next, 100, 300))
		g.send(t.Context(), httptest.NewRecorder(), 4_000)
		g.wants(t, "after 300 of 4 000 tokens", 300, 300, 0)
	})
}

// BerriAI/litellm#27955 and #27001: reservations and places of streams were lost after hang-ups, failures and denials.
func TestNoReservationIsLost(t *testing.T) {
	for name, end := range map[string]func(g gateway, next chan bool){
		"a hang-up after 100 tokens": func(g gateway, next chan bool) {
			ctx, hangUp := context.WithCancel(context.Background())
			go func() { next <- true; synctest.Wait(); hangUp() }()
			g.send(ctx, httptest.NewRecorder(), 4_000)
		},
		"a client that reads no more": func(g gateway, next chan bool) {
			go func() { next <- true }()
			g.send(context.Background(), deaf{httptest.NewRecorder()}, 4_000)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			next := make(chan bool)
			g := newGateway(t, stream(next, 100, 4_000))
			end(g, next)
			g.wants(t, name, 100, 100, 0)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(context.Context, string, int64) iter.Seq2[string, int64] {
			return func(func(string, int64) bool) {}
		})
		g.send(t.Context(), httptest.NewRecorder(), 4_000)
		g.wants(t, "a model that fails at once", 0, 0, 0)
		g = newGateway(t, func(context.Context, string, int64) iter.Seq2[string, int64] { panic(http.ErrAbortHandler) })
		func() {
			defer func() { _ = recover() }()
			g.send(t.Context(), httptest.NewRecorder(), 4_000)
		}()
		g.wants(t, "a panic", 0, 0, 0)
	})
	synctest.Test(t, func(t *testing.T) {
		next := make(chan bool)
		close(next)
		g := newGateway(t, stream(next, 8_000))
		for range 12 {
			g.send(t.Context(), httptest.NewRecorder(), 8_000)
		}
		for range 100 { // denied by one limit, so charged to none
			g.send(t.Context(), httptest.NewRecorder(), 8_000)
		}
		g.wants(t, "100 denials", 96_000, 96_000, 0)
	})
}

// TestForward: a client reads one line of each field, of the limit that is nearer: first the gateway's, then the vendor's.
func TestForward(t *testing.T) {
	left := "59"
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("RateLimit-Policy", `"vendor";q=60;w=60`)
		w.Header().Set("RateLimit", `"vendor";r=`+left+`;t=30`)
		w.Header().Set("RateLimit-Limit", "60")
		w.Header().Set("RateLimit-Remaining", left)
		w.Header().Set("RateLimit-Reset", "30")
		if r.Header.Get("Authorization") != "" {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	defer vendor.Close()
	address, err := url.Parse(vendor.URL)
	if err != nil {
		t.Fatal(err)
	}
	limited, err := limits(algorithms.NewMemory(nil), func(context.Context, string) (keyfunc.Identity, error) { return keyfunc.Identity{ID: "acme"}, nil })
	if err != nil {
		t.Fatal(err)
	}
	h := forward(limited, address)
	for _, tt := range []struct{ left, limit, policy string }{
		{"60", "600", `"requests";`}, {"6", "60", `"vendor";`},
	} {
		left = tt.left
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/v1/models", nil)
		r.Header.Set("Authorization", "Bearer key")
		h.ServeHTTP(w, r)
		for _, field := range []string{"RateLimit", "RateLimit-Policy", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"} {
			if got := w.Header().Values(field); len(got) != 1 {
				t.Errorf("%s of the vendor left: got %d lines of %s, want 1: %q", left, len(got), field, got)
			}
		}
		if got := w.Header(); w.Code != http.StatusOK || got.Get("RateLimit-Limit") != tt.limit || !strings.HasPrefix(got.Get("RateLimit"), tt.policy) {
			t.Errorf("%s of the vendor left: got %d and %v, want the limit of %s", left, w.Code, got, tt.policy)
		}
	}
}

// deaf is the connection of a client that has hung up.
type deaf struct{ *httptest.ResponseRecorder }

func (deaf) Write([]byte) (int, error)       { return 0, errors.New("broken pipe") }
func (deaf) WriteString(string) (int, error) { return 0, errors.New("broken pipe") }

func TestPrice(t *testing.T) {
	for tokens, want := range map[int64]int64{0: 0, 1: 15, 7: 105, 1_000_000: 15 * dollar} {
		if got := price(tokens); got != want {
			t.Errorf("%d tokens: got %d units, want %d", tokens, got, want)
		}
	}
}
