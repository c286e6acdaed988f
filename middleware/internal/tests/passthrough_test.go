package tests

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/middleware"
)

// limited wraps next by a policy that admits all requests of the test.
func limited(t *testing.T, next http.HandlerFunc) http.Handler {
	return newMiddleware(t, newStill(t), nil, byIP("p", hourly)).Handler(next)
}

// serveOver starts a server of h and returns its URL and a client, of that version of HTTP.
func serveOver(t *testing.T, major int, h http.Handler) (string, *http.Client) {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.EnableHTTP2 = major == 2
	srv.StartTLS()
	t.Cleanup(srv.Close)
	client := srv.Client()
	client.Timeout = time.Minute
	if major == 1 {
		client.Transport.(*http.Transport).TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	return srv.URL, client
}

// overBoth runs f over HTTP/1.1 and HTTP/2.
func overBoth(t *testing.T, next http.HandlerFunc, f func(t *testing.T, url string, client *http.Client)) {
	for major, name := range map[int]string{1: "HTTP1", 2: "HTTP2"} {
		t.Run(name, func(t *testing.T) {
			url, client := serveOver(t, major, limited(t, func(w http.ResponseWriter, r *http.Request) {
				if r.ProtoMajor != major {
					t.Errorf("got %s, want HTTP/%d", r.Proto, major)
				}
				next(w, r)
			}))
			f(t, url, client)
		})
	}
}

// TestSameWriter: the handler gets the writer itself, with all its abilities.
func TestSameWriter(t *testing.T) {
	w := httptest.NewRecorder()
	limited(t, func(got http.ResponseWriter, _ *http.Request) {
		if got != http.ResponseWriter(w) {
			t.Errorf("got %T, want the writer that came", got)
		}
	}).ServeHTTP(w, from("192.0.2.1"))
}

// TestStreaming: flushed bytes arrive before the handler ends.
func TestStreaming(t *testing.T) {
	next := make(chan struct{})
	overBoth(t, func(w http.ResponseWriter, r *http.Request) {
		flusher, can := w.(http.Flusher)
		if !can {
			t.Error("got a writer that cannot flush")
			return
		}
		w.Header().Set("Trailer", "Sum")
		for range 3 {
			_, _ = io.WriteString(w, "data: x\n")
			flusher.Flush()
			select {
			case <-next:
			case <-r.Context().Done():
				return
			}
		}
		w.Header().Set("Sum", "3")
	}, func(t *testing.T, url string, client *http.Client) {
		res, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		if got := res.Header.Get("Ratelimit"); got != `"p";r=9;t=3240` {
			t.Errorf("got RateLimit %q, want it before the first byte", got)
		}
		lines := bufio.NewScanner(res.Body)
		for range 3 {
			if !lines.Scan() || lines.Text() != "data: x" {
				t.Fatalf("got %q and error %v, want a line", lines.Text(), lines.Err())
			}
			next <- struct{}{}
		}
		if lines.Scan() || res.Trailer.Get("Sum") != "3" || len(res.Trailer) != 1 {
			t.Errorf("got %q and trailer %v, want the end, and the handler's trailer alone", lines.Text(), res.Trailer)
		}
	})
}

// TestResponseController finds the abilities of the server's writer.
func TestResponseController(t *testing.T) {
	overBoth(t, func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		if err := errors.Join(c.SetReadDeadline(time.Now().Add(time.Minute)), c.SetWriteDeadline(time.Now().Add(time.Minute)),
			c.EnableFullDuplex(), c.Flush()); err != nil {
			t.Errorf("got error %v, want none", err)
		}
	}, func(t *testing.T, url string, client *http.Client) {
		res, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body) // until the handler is done
		_ = res.Body.Close()
	})
}

// TestHijack: a connection can be taken over, as WebSockets do.
func TestHijack(t *testing.T) {
	h := limited(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Errorf("got error %v, want the connection", err)
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nhello")
		_ = rw.Flush()
	})
	got := exchange(t, h, "GET / HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
	if want := "HTTP/1.1 101 Switching Protocols\nUpgrade: x\n\nhello"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestInformational responses pass, and the fields come once each with the final one.
func TestInformational(t *testing.T) {
	overBoth(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusSeeOther)
	}, func(t *testing.T, url string, client *http.Client) {
		var interim []int
		trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, _ textproto.MIMEHeader) error {
			interim = append(interim, code)
			return nil
		}}
		r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if len(interim) != 1 || res.StatusCode != http.StatusSeeOther || len(res.Header.Values("Ratelimit")) != 1 {
			t.Errorf("got %v, then %d with\n%swant 103, then 303 with one line each", interim, res.StatusCode, limits(res.Header))
		}
	})
}

// TestPanicPropagates from the handler and from functions of policies, and does not affect the next request.
func TestPanicPropagates(t *testing.T) {
	bad := func(r *http.Request) bool {
		if r.URL.Path == "/skip" {
			panic("in Skip")
		}
		return false
	}
	a, b := byIP("a", hourly), byIP("b", hourly)
	b.Skip = bad
	o := &ratelimit.Options{Refused: func(http.ResponseWriter, *http.Request, ratelimit.Verdict) { panic("in Refused") }}
	memory := newStill(t)
	h := newMiddleware(t, memory, o, a, b).Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/abort" {
			panic(http.ErrAbortHandler)
		}
	}))
	serve := func(path, ip string) (recovered any) {
		defer func() { recovered = recover() }()
		r := from(ip)
		r.URL.Path = path
		record(h, r)
		return nil
	}
	for i := range 20 {
		if got := serve("/abort", "192.0.2.1"); i < 10 && got != http.ErrAbortHandler || i >= 10 && got != "in Refused" {
			t.Errorf("request %d: got panic %v", i, got)
		}
		if got := serve("/skip", "192.0.2.2"); got != "in Skip" {
			t.Errorf("got panic %v, want Skip's", got)
		}
		if got := serve("/", "192.0.2.3"); i < 10 && got != nil {
			t.Errorf("got panic %v, want none", got)
		}
	}
	if got := left(t, memory, a, "ip=192.0.2.2"); got != 10 {
		t.Errorf("got %d left of a request that was not decided, want 10", got)
	}
	srvURL, client := serveOver(t, 1, h)
	if res, err := client.Get(srvURL + "/abort"); err == nil {
		_ = res.Body.Close()
		t.Error("got an answer, want the connection aborted")
	} else if !strings.Contains(err.Error(), "EOF") {
		t.Errorf("got error %v, want EOF", err)
	}
}
