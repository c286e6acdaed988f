// The clients of package client. Each is a goroutine with a Transport of its own. The Transport's jitter has no seed.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/penstock-go/penstock/middleware/client"
)

// patient returns Options of a client that does not give up before it is served.
func patient(pace bool) *client.Options {
	return &client.Options{Pace: pace, Attempts: 10_000, MaxWait: time.Hour}
}

// A base is the RoundTripper of a Transport. It sends one attempt of a request.
type base func(r *http.Request) (*http.Response, error)

func (b base) RoundTrip(r *http.Request) (*http.Response, error) { return b(r) }

// drive lets a crowd of Transports try until each client has all its successes. It must run in a bubble of synctest.
func (s setting) drive(k kind, seed uint64) result {
	server, r, begin := newServer(k), result{kind: k.name}, time.Now()
	var all sync.WaitGroup
	var mu sync.Mutex // guards r
	for i := range s.clients {
		all.Go(func() {
			v := newVisitor(i, s.wants, seed)
			time.Sleep(v.draw(s.within))
			err := insist(context.Background(), k.transport, "http://herd.example/", s.wants, func(*http.Request) (*http.Response, error) {
				w := server.ask(v)
				mu.Lock()
				r.count(time.Since(begin), w.Code == http.StatusOK)
				mu.Unlock()
				time.Sleep(v.trip())
				return w.Result(), nil
			})
			mu.Lock()
			defer mu.Unlock()
			r.failed = errors.Join(r.failed, err)
		})
	}
	all.Wait()
	return r
}

// insist sends requests through a Transport until n of them are served.
func insist(ctx context.Context, o *client.Options, url string, n int, send base) error {
	transport, err := client.NewTransport(send, o)
	if err != nil {
		return err
	}
	for range n {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := transport.RoundTrip(r)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("got status %s", resp.Status)
		}
	}
	return nil
}
