// The load client of -hammer.

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	penstock "github.com/penstock-go/penstock/middleware/client" // limits.go has a client, too
)

// hammers is how many requests are under way, or wait to be sent again.
const hammers = 8

// A score counts what the requests of a hammer meet. It is an Observer.
type score struct {
	begun                     time.Time
	requests, denials, gaveUp atomic.Int64
	failures                  atomic.Int64
	waited                    atomic.Int64 // in nanoseconds, of all requests together
}

// Observe implements client.Observer.
func (s *score) Observe(ctx context.Context, e penstock.Event) {
	switch e.Kind {
	case penstock.Sent:
		if ctx.Err() != nil {
			return // the end of the program
		}
		s.requests.Add(1)
		if e.Denied {
			s.denials.Add(1)
		}
		if e.Err != nil {
			s.failures.Add(1)
		}
	case penstock.Waited:
		if e.Reason == "retry" {
			s.waited.Add(int64(e.Elapsed))
		}
	case penstock.GaveUp:
		s.gaveUp.Add(1)
	}
}

func (s *score) String() string {
	return fmt.Sprintf("%v: %d requests, %d denials, %d returned denied, %d failed, %v waited",
		time.Since(s.begun).Round(time.Second), s.requests.Load(), s.denials.Load(), s.gaveUp.Load(), s.failures.Load(),
		time.Duration(s.waited.Load()).Round(100*time.Millisecond))
}

// hammer sends requests to a URL until ctx ends, as fast as the server lets it. It writes a
// line of progress each second.
func hammer(ctx context.Context, url string, out io.Writer) error {
	s := &score{begun: time.Now()}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = hammers
	transport, err := penstock.NewTransport(base, &penstock.Options{Name: "hammer", Observers: []penstock.Observer{s}})
	if err != nil {
		return err
	}
	visitor := &http.Client{Transport: transport}
	defer visitor.CloseIdleConnections()
	var wg sync.WaitGroup
	for range hammers {
		wg.Go(func() {
			for ctx.Err() == nil {
				visit(ctx, visitor, url)
			}
		})
	}
	for tick := time.NewTicker(time.Second); ctx.Err() == nil; {
		select {
		case <-tick.C:
			fmt.Fprintf(out, "\r%v", s)
		case <-ctx.Done():
			tick.Stop()
		}
	}
	wg.Wait()
	fmt.Fprintf(out, "\r%v\n", s)
	return nil
}

// visit sends one request. A denial that the Transport returns, and a failure, pause it:
// the Transport has given up, and the server needs time.
func visit(ctx context.Context, visitor *http.Client, url string) {
	pause := time.Second
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err == nil {
		var resp *http.Response
		if resp, err = visitor.Do(req); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body) // only the header counts
			_ = resp.Body.Close()
			wait, denied := penstock.RetryAfter(resp)
			if !denied {
				return
			}
			pause = wait
		}
	}
	select {
	case <-time.After(pause):
	case <-ctx.Done():
	}
}
