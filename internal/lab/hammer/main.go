// Command hammer is a load client that waits as the server asks:
//
//	go -C internal/lab run ./hammer http://127.0.0.1:8080/v1/orders/1
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/middleware/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stderr))
}

// run sends requests until ctx ends, and returns the exit code.
func run(ctx context.Context, args []string, out io.Writer) int {
	if len(args) != 1 {
		fmt.Fprintln(out, "usage: hammer URL")
		return 2
	}
	if u, err := url.Parse(args[0]); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		fmt.Fprintf(out, "hammer: %q is not a URL; want e.g. http://127.0.0.1:8080/v1/orders/1\n", args[0])
		return 2
	}
	if err := hammer(ctx, args[0], out); err != nil {
		fmt.Fprintf(out, "hammer: %v\n", err)
		return 1
	}
	return 0
}

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
func (s *score) Observe(ctx context.Context, e client.Event) {
	switch e.Kind {
	case client.Sent:
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
	case client.Waited:
		if e.Reason == "retry" {
			s.waited.Add(int64(e.Elapsed))
		}
	case client.GaveUp:
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
	transport, err := client.NewTransport(base, &client.Options{Name: "hammer", Observers: []client.Observer{s}})
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
			wait, denied := client.RetryAfter(resp)
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
