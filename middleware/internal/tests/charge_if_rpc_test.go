// What ChargeIf sees of gRPC, gRPC-Web and Connect. internal/clients has tests with real servers and clients.

package tests

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// These bodies end with UNAUTHENTICATED.
const (
	webBody    = "\x00\x00\x00\x00\x01m" + "\x80\x00\x00\x00\x10grpc-status:16\r\n"
	streamBody = "\x00\x00\x00\x00\x01m" + "\x02\x00\x00\x00\x24" + `{"error":{"code":"unauthenticated"}}`
)

// TestOutcomesOfRPC: ChargeIf receives the HTTP status of the code, although the response has 200.
func TestOutcomesOfRPC(t *testing.T) {
	begin := func(w http.ResponseWriter, contentType string) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(200)
	}
	tests := []struct {
		name    string
		handler func(http.ResponseWriter, context.CancelFunc)
		status  int
	}{
		{"trailers only", func(w http.ResponseWriter, _ context.CancelFunc) {
			w.Header().Set("Grpc-Status", "16")
			begin(w, "application/grpc")
		}, 401},
		{"only header fields", func(w http.ResponseWriter, _ context.CancelFunc) {
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set("Grpc-Status", "7")
		}, 403},
		{"a trailer", func(w http.ResponseWriter, _ context.CancelFunc) {
			w.Header().Set("Trailer", "Grpc-Status")
			begin(w, "application/grpc+proto")
			_, _ = io.WriteString(w, "\x00\x00\x00\x00\x00")
			w.Header().Set("Grpc-Status", "8")
		}, 429},
		{"success", func(w http.ResponseWriter, _ context.CancelFunc) {
			begin(w, "application/grpc")
			w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
		}, 200},
		{"another status of HTTP", func(w http.ResponseWriter, _ context.CancelFunc) {
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set("Grpc-Status", "0")
			w.WriteHeader(415)
		}, 415},
		{"no code", func(w http.ResponseWriter, _ context.CancelFunc) { begin(w, "application/grpc") }, 500},
		{"a panic", func(w http.ResponseWriter, _ context.CancelFunc) {
			begin(w, "application/grpc")
			panic(http.ErrAbortHandler)
		}, 500},
		{"hung up", func(w http.ResponseWriter, hangUp context.CancelFunc) { begin(w, "application/connect+json"); hangUp() }, 499},
		{"hung up after the code", func(w http.ResponseWriter, hangUp context.CancelFunc) {
			begin(w, "application/grpc")
			w.Header().Set(http.TrailerPrefix+"Grpc-Status", "5")
			hangUp()
		}, 404},
		{"gRPC-Web", func(w http.ResponseWriter, _ context.CancelFunc) {
			begin(w, "application/grpc-web")
			_, _ = io.WriteString(w, webBody)
		}, 401},
		{"a stream of Connect", func(w http.ResponseWriter, _ context.CancelFunc) {
			w.Header().Set("Content-Type", "application/connect+proto")
			_, _ = io.WriteString(w, streamBody)
		}, 401},
		{"no RPC", func(w http.ResponseWriter, _ context.CancelFunc) {
			w.Header().Set("Grpc-Status", "16")
			begin(w, "application/octet-stream")
			_, _ = io.WriteString(w, webBody)
		}, 200},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory, p := newStill(t), newOutcomes(hourly)
				ctx, hangUp := context.WithCancel(t.Context())
				defer hangUp()
				h := newMiddleware(t, memory, nil, p.Policy).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { tt.handler(w, hangUp) }))
				func() {
					defer func() { _ = recover() }()
					record(h, rpc("Content-Type", "application/grpc").WithContext(ctx))
				}()
				if fmt.Sprint(p.asked) != fmt.Sprint([]int{tt.status}) {
					t.Errorf("got statuses %v, want %d", p.asked, tt.status)
				}
				want := int64(10)
				if tt.status >= 400 {
					want = 9
				}
				if got := left(t, memory, p.Policy, "ip=192.0.2.1"); got != want {
					t.Errorf("got %d left, want %d", got, want)
				}
			})
		})
	}
}

// TestFailedLoginsByRPC: a limit of failures stops a client that guesses by gRPC.
func TestFailedLoginsByRPC(t *testing.T) {
	p := newOutcomes(algorithms.SlidingWindowLog(5, time.Hour))
	failed := new(counter)
	h := newMiddleware(t, newStill(t), nil, p.Policy).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		failed.ServeHTTP(w, r)
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Grpc-Status", "16")
		w.WriteHeader(200)
	}))
	for range 500 {
		record(h, rpc("Content-Type", "application/grpc"))
	}
	if got := failed.n.Load(); got != 5 {
		t.Errorf("%d failed logins were admitted, want 5", got)
	}
}

// TestRefusalsByRPC: a refusal of an inner Middleware is an outcome, too.
func TestRefusalsByRPC(t *testing.T) {
	for _, contentType := range []string{"application/grpc", "application/grpc-web+proto", "application/connect+json"} {
		p := newOutcomes(hourly)
		inner := newMiddleware(t, newStill(t), nil, byIP("inner", algorithms.TokenBucket(1, time.Hour)))
		h := newMiddleware(t, newStill(t), nil, p.Policy).Handler(inner.Handler(ok))
		for range 2 {
			record(h, rpc("Content-Type", contentType))
		}
		if fmt.Sprint(p.asked) != "[200 429]" {
			t.Errorf("%s: got statuses %v, want 200 and 429", contentType, p.asked)
		}
	}
}

// TestCopiedRPC: a body that net/http copies by itself is read, too.
func TestCopiedRPC(t *testing.T) {
	for contentType, want := range map[string]int{"application/grpc-web": 401, "application/octet-stream": 200} {
		for _, begun := range []bool{false, true} {
			p, ended := newOutcomes(hourly), make(chan int, 1)
			p.ChargeIf = func(status int) bool { ended <- status; return true }
			h := newMiddleware(t, newStill(t), nil, p.Policy).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if w.Header().Set("Content-Type", contentType); begun {
					w.WriteHeader(200)
				}
				if n, err := w.(io.ReaderFrom).ReadFrom(strings.NewReader(webBody)); int(n) != len(webBody) || err != nil {
					t.Errorf("got %d bytes, %v", n, err)
				}
			}))
			server := httptest.NewServer(h)
			resp, err := server.Client().Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close() // only read
			if got := <-ended; got != want || string(body) != webBody || err != nil {
				t.Errorf("%s: got status %d and %q, %v, want %d and the body", contentType, got, body, err, want)
			}
			server.Close()
		}
	}
}

// BenchmarkChargeIf measures a request of a policy with ChargeIf.
func BenchmarkChargeIf(b *testing.B) {
	p := byIP("p", algorithms.TokenBucket(1e9, time.Second))
	p.ChargeIf = func(int) bool { return true }
	for _, contentType := range []string{"application/json", "application/grpc-web"} {
		b.Run(contentType, func(b *testing.B) {
			h := newMiddleware(b, newMemory(b), nil, p).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = []string{contentType}
				_, _ = io.WriteString(w, webBody)
			}))
			w, r := &sink{h: make(http.Header)}, from("192.0.2.1")
			b.ReportAllocs()
			for b.Loop() {
				clear(w.h)
				h.ServeHTTP(w, r)
			}
		})
	}
}
