// Tests of the end of the server.

package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/redistest"
)

// TestShutdown: a request in flight finishes, held requests are refused, and new ones are not accepted.
func TestShutdown(t *testing.T) {
	backends(t, func(t *testing.T, args ...string) {
		s := start(t, args...)
		body, rest := io.Pipe()
		login, reading := s.sendLater(t, body)
		await(t, "a login whose handler reads its body", reading)
		held := s.fillQueue(t)
		s.stop()

		refused := 0
		for _, answer := range held {
			r := <-answer
			switch r.status {
			case http.StatusOK, http.StatusTooManyRequests: // before the end
			case http.StatusServiceUnavailable:
				refused++
				if r.header.Get("Retry-After") == "" {
					t.Error("got 503 without Retry-After")
				}
			default:
				t.Errorf("got %d for a message that was held, want 503", r.status)
			}
		}
		if refused == 0 {
			t.Error("got no held request refused, want 503")
		}
		awaitClosed(t, strings.TrimPrefix(s.url, "http://"))
		select {
		case <-s.done:
			t.Error("the server ended before a request in flight")
		default:
		}
		if _, err := io.WriteString(rest, right); err != nil {
			t.Error(err)
		}
		rest.Close()
		if r := <-login; r.status != http.StatusOK || r.body != `{"user":"demo"}`+"\n" {
			t.Errorf("in flight: got %d and %q, want 200 and the user", r.status, r.body)
		}
		s.wait(t)
		if log := s.log.String(); !strings.Contains(log, "shutting down") {
			t.Errorf("got log\n%s\nwant the shutdown in it", log)
		}
	})
}

// sendLater sends a login. It closes reading when the handler reads the body.
func (s *server) sendLater(t *testing.T, body io.Reader) (answer chan reply, reading chan struct{}) {
	answer, reading = make(chan reply, 1), make(chan struct{})
	s.client.Transport.(*http.Transport).ExpectContinueTimeout = deadline
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{Got100Continue: func() { close(reading) }})
	go func() { answer <- s.sendIn(t, ctx, body, "POST /v1/login", "Expect", "100-continue") }()
	return answer, reading
}

// fillQueue sends messages until one is denied. Each message has its own connection, and the server accepts connections
// in order, so after a last request it has accepted all of them, and will answer each.
func (s *server) fillQueue(t *testing.T) (answers []chan reply) {
	t.Helper()
	defer s.onNewConnection(t, "/healthz")
	denied := make(chan struct{})
	deny := sync.OnceFunc(func() { close(denied) })
	for range 50 {
		answer, written := make(chan reply, 1), make(chan struct{})
		ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
			WroteRequest: func(httptrace.WroteRequestInfo) { close(written) },
		})
		go func() {
			r := s.sendIn(t, ctx, http.NoBody, "POST /v1/sms", "Connection", "close")
			if r.status == http.StatusTooManyRequests {
				deny()
			}
			answer <- r
		}()
		await(t, "a message that is sent", written)
		answers = append(answers, answer)
		select {
		case <-denied:
			return answers
		case <-time.After(50 * time.Millisecond): // held, or not answered yet
		}
	}
	await(t, "a message that is denied", denied)
	return answers
}

func (s *server) onNewConnection(t *testing.T, path string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(s.url + path)
	if err != nil {
		t.Error(err)
		return
	}
	response.Body.Close()
}

func await(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(deadline):
		t.Fatalf("waited %v for %s", deadline, what)
	}
}

// awaitClosed waits until no process listens on address.
func awaitClosed(t *testing.T, address string) {
	t.Helper()
	redistest.Until(t, address+" is closed", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
}

// TestSignals: the program ends on the signals of a shell.
func TestSignals(t *testing.T) {
	t.Parallel()
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			program, s := startProgram(t)
			if err := program.Process.Signal(signal); err != nil {
				t.Error(err)
			}
			if err := program.Wait(); err != nil || !strings.Contains(s.log.String(), "shutting down") {
				t.Errorf("got %v and\n%s\nwant exit code 0", err, s.log)
			}
		})
	}
}

// startProgram starts the program as a process, for tests of signals and of the log. The server that it returns has no
// stop.
func startProgram(t *testing.T, args ...string) (*exec.Cmd, *server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	t.Cleanup(cancel)
	s := &server{log: new(text), done: make(chan struct{}), client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(s.client.CloseIdleConnections)
	program := exec.CommandContext(ctx, os.Args[0], append([]string{"-addr", "127.0.0.1:0"}, args...)...)
	program.Env = append(os.Environ(), asProgram+"=1", "GORACE=atexit_sleep_ms=0")
	program.Stderr = s.log
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	s.url = s.listening(t)
	return program, s
}
