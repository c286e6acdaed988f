package tests

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

// outcomes is a policy that keeps the statuses that it was asked of, and counts failures only.
type outcomes struct {
	ratelimit.Policy
	mu    sync.Mutex
	asked []int
}

func newOutcomes(l algorithms.Limit) *outcomes {
	o := &outcomes{Policy: byIP("failures", l)}
	o.ChargeIf = func(status int) bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.asked = append(o.asked, status)
		return status >= 400
	}
	return o
}

// TestOutcomes: each way to end a response is an outcome.
func TestOutcomes(t *testing.T) {
	tests := []struct {
		name    string
		handler http.HandlerFunc
		gone    bool
		status  int
		left    int64
	}{
		{"nothing written", func(http.ResponseWriter, *http.Request) {}, false, 200, 10},
		{"a body", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }, false, 200, 10},
		{"copied", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, strings.NewReader("ok")) }, false, 200, 10},
		{"a status", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, false, 401, 9},
		{"the first of two", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401); w.WriteHeader(200) }, false, 401, 9},
		{"a hint first", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(403) }, false, 403, 9},
		{"switched", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(101); w.WriteHeader(500) }, false, 101, 10},
		{"flushed", func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush()
			w.WriteHeader(500)
		}, false, 200, 10},
		{"a panic", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false, 500, 9},
		{"a panic after an answer", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204); panic(http.ErrAbortHandler) }, false, 204, 10},
		{"hung up", func(http.ResponseWriter, *http.Request) {}, true, 499, 9},
		{"hung up after an answer", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, true, 204, 10},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory, p := newStill(t), newOutcomes(hourly)
				r := from("192.0.2.1")
				ctx, hangUp := context.WithCancel(r.Context())
				defer hangUp()
				h := newMiddleware(t, memory, nil, p.Policy).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if tt.gone {
						hangUp()
					}
					tt.handler(w, r)
				}))
				func() {
					defer func() { _ = recover() }()
					record(h, r.WithContext(ctx))
				}()
				synctest.Wait()
				if got := left(t, memory, p.Policy, "ip=192.0.2.1"); got != tt.left || fmt.Sprint(p.asked) != fmt.Sprint([]int{tt.status}) {
					t.Errorf("got %d left and statuses %v, want %d and [%d]", got, p.asked, tt.left, tt.status)
				}
			})
		})
	}
}

// TestOutcomesInFlight: however many requests are in flight, no more than the limit count, and the others go back.
func TestOutcomesInFlight(t *testing.T) {
	for name, status := range map[string]int{"all fail": 401, "all succeed": 200} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory, p := newStill(t), newOutcomes(algorithms.SlidingWindowLog(5, time.Hour))
				release := make(chan struct{})
				served, denied := new(counter), new(counter)
				h := newMiddleware(t, memory, nil, p.Policy).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					served.ServeHTTP(w, r)
					<-release
					w.WriteHeader(status)
				}))
				var all sync.WaitGroup
				for range 200 {
					all.Go(func() {
						if record(h, from("192.0.2.1")).Code == http.StatusTooManyRequests {
							denied.ServeHTTP(nil, nil)
						}
					})
				}
				synctest.Wait()
				close(release)
				all.Wait()
				synctest.Wait()
				want := int64(5)
				if status >= 400 {
					want = 0
				}
				if got := left(t, memory, p.Policy, "ip=192.0.2.1"); served.n.Load() != 5 || denied.n.Load() != 195 || got != want {
					t.Errorf("served %d, denied %d, left %d; want 5, 195 and %d", served.n.Load(), denied.n.Load(), got, want)
				}
			})
		})
	}
}

// TestGiveBackTooLate: a return after its window has rolled away frees no unit of a later window. A token bucket has no
// windows, and credits units in use.
func TestGiveBackTooLate(t *testing.T) {
	for _, limit := range []algorithms.Limit{
		algorithms.FixedWindow(10, time.Second), algorithms.SlidingWindowLog(10, time.Second),
		algorithms.SlidingWindowCounter(10, time.Second),
	} {
		t.Run(limit.Algorithm().String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory, p := newMemory(t), newOutcomes(limit)
				h := newMiddleware(t, memory, nil, p.Policy).Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
					time.Sleep(5500 * ms)
				}))
				var first, second sync.WaitGroup
				for range 4 {
					first.Go(func() { record(h, from("192.0.2.1")) })
				}
				time.Sleep(5250 * ms)
				for range 6 {
					second.Go(func() { record(h, from("192.0.2.1")) })
				}
				synctest.Wait()
				time.Sleep(250*ms - 1)
				before := left(t, memory, p.Policy, "ip=192.0.2.1")
				first.Wait()
				synctest.Wait()
				if got := left(t, memory, p.Policy, "ip=192.0.2.1"); before < 4 || before == 10 || got != before {
					t.Errorf("got %d left, and %d after the first were given back, want as many", before, got)
				}
				second.Wait()
			})
		})
	}
}

// TestWatchedWriters: behind real servers a handler has the abilities that it has without the middleware.
func TestWatchedWriters(t *testing.T) {
	abilities := func(w http.ResponseWriter) string {
		_, flushes := w.(http.Flusher)
		_, hijacks := w.(http.Hijacker)
		_, reads := w.(io.ReaderFrom)
		_, pushes := w.(http.Pusher)
		return fmt.Sprint(flushes, hijacks, reads, pushes, http.NewResponseController(w).SetWriteDeadline(time.Time{}))
	}
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprint("http2=", http2), func(t *testing.T) {
			var bare, behind string
			p := newOutcomes(hourly)
			watched := newMiddleware(t, newStill(t), nil, p.Policy).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				behind = abilities(w)
				_ = http.NewResponseController(w).Flush()
			}))
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				bare = abilities(w)
				watched.ServeHTTP(w, r)
			}))
			server.EnableHTTP2 = http2
			server.StartTLS()
			defer server.Close()
			resp, err := server.Client().Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if bare != behind || (resp.ProtoMajor == 2) != http2 {
				t.Errorf("got %q over %s, want %q", behind, resp.Proto, bare)
			}
		})
	}
}

// TestHijackedOutcome: a connection that was taken over is an outcome, once its handler returns.
func TestHijackedOutcome(t *testing.T) {
	p, ended := newOutcomes(hourly), make(chan struct{})
	h := newMiddleware(t, newStill(t), nil, p.Policy).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = rw.Flush()
	}))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		h.ServeHTTP(w, r)
	}))
	defer server.Close()
	resp, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = bufio.NewReader(resp.Body).ReadByte()
	_ = resp.Body.Close()
	<-ended
	if fmt.Sprint(p.asked) != "[101]" {
		t.Errorf("got statuses %v, want 101", p.asked)
	}
}

// TestWatchedAbilities: handlers may flush, hijack and push exactly if the writer below can.
func TestWatchedAbilities(t *testing.T) {
	type f interface{ http.Flusher }
	type h interface{ http.Hijacker }
	type p interface{ http.Pusher }
	base := struct{ http.ResponseWriter }{httptest.NewRecorder()}
	can := func(w http.ResponseWriter) string {
		_, flushes := w.(http.Flusher)
		_, hijacks := w.(http.Hijacker)
		_, pushes := w.(http.Pusher)
		return fmt.Sprintf("flushes: %t, hijacks: %t, pushes: %t", flushes, hijacks, pushes)
	}
	for _, w := range []http.ResponseWriter{
		base,
		struct {
			http.ResponseWriter
			f
		}{base, nil},
		struct {
			http.ResponseWriter
			h
		}{base, nil},
		struct {
			http.ResponseWriter
			p
		}{base, nil}, // as http.TimeoutHandler's
		struct {
			http.ResponseWriter
			f
			h
		}{base, nil, nil},
		struct {
			http.ResponseWriter
			f
			p
		}{base, nil, nil},
		struct {
			http.ResponseWriter
			h
			p
		}{base, nil, nil},
		struct {
			http.ResponseWriter
			f
			h
			p
		}{base, nil, nil, nil},
	} {
		newMiddleware(t, newStill(t), nil, newOutcomes(hourly).Policy).Handler(http.HandlerFunc(func(got http.ResponseWriter, _ *http.Request) {
			if can(got) != can(w) {
				t.Errorf("got %s; want %s", can(got), can(w))
			}
		})).ServeHTTP(w, from("192.0.2.1"))
	}
}

// TestOutcomesByController: an answer through writers that only unwrap is an outcome, too.
func TestOutcomesByController(t *testing.T) {
	for _, tt := range []struct {
		name    string
		handler func(*testing.T, http.ResponseWriter)
		status  int
	}{
		{"taken over", func(t *testing.T, w http.ResponseWriter) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_ = conn.Close()
		}, 101},
		{"flushed", func(t *testing.T, w http.ResponseWriter) {
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			panic(http.ErrAbortHandler)
		}, 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, ended := newOutcomes(hourly), make(chan struct{})
			h := newMiddleware(t, newStill(t), nil, p.Policy).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { tt.handler(t, w) }))
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(ended)
				h.ServeHTTP(unwraps{w}, r)
			}))
			defer server.Close()
			if resp, err := server.Client().Get(server.URL); err == nil {
				_ = resp.Body.Close()
			}
			<-ended
			if fmt.Sprint(p.asked) != fmt.Sprint([]int{tt.status}) {
				t.Errorf("got statuses %v, want %d", p.asked, tt.status)
			}
		})
	}
}

// unwraps can do nothing by itself.
type unwraps struct{ http.ResponseWriter }

func (u unwraps) Unwrap() http.ResponseWriter { return u.ResponseWriter }

// TestUnsupported: an operation that no writer supports returns the server's error, and is no outcome.
func TestUnsupported(t *testing.T) {
	p := newOutcomes(hourly)
	newMiddleware(t, newStill(t), nil, p.Policy).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c := http.NewResponseController(w)
		_, _, err := c.Hijack()
		if flush := c.Flush(); !errors.Is(flush, http.ErrNotSupported) || !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("got errors %v and %v, want ErrNotSupported", flush, err)
		}
		w.WriteHeader(http.StatusTeapot)
	})).ServeHTTP(struct{ http.ResponseWriter }{httptest.NewRecorder()}, from("192.0.2.1"))
	if fmt.Sprint(p.asked) != "[418]" {
		t.Errorf("got statuses %v, want 418", p.asked)
	}
}

// TestOutcomeOfAFailedCopy: nothing was sent before the source failed, and so the error is the answer.
func TestOutcomeOfAFailedCopy(t *testing.T) {
	p, ended := newOutcomes(hourly), make(chan struct{})
	h := newMiddleware(t, newStill(t), nil, p.Policy).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := io.Copy(w, iotest.ErrReader(errDown)); err != nil {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		h.ServeHTTP(w, r)
	}))
	defer server.Close()
	resp, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	<-ended
	if fmt.Sprint(p.asked) != "[502]" || resp.StatusCode != http.StatusBadGateway {
		t.Errorf("got statuses %v and answer %d, want 502", p.asked, resp.StatusCode)
	}
}

// TestHijackersWithoutReadFrom: writers of other middlewares can be taken over as before.
func TestHijackersWithoutReadFrom(t *testing.T) {
	type writer struct {
		http.ResponseWriter
		http.Flusher
		http.Hijacker
	}
	p := newOutcomes(hourly)
	w := writer{httptest.NewRecorder(), nil, nil}
	newMiddleware(t, newStill(t), nil, p.Policy).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, hijacks := w.(http.Hijacker)
		if _, reads := w.(io.ReaderFrom); !hijacks || reads {
			t.Errorf("hijacks: %t, reads: %t; want what the writer below can do", hijacks, reads)
		}
	})).ServeHTTP(w, from("192.0.2.1"))
}
