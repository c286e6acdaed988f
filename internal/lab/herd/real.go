// The real experiment: the example server as a process, and clients in this one.

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/lab/product"
	"github.com/penstock-go/penstock/middleware/client"
)

const (
	realFile = "REAL.md"
	example  = "examples/chi-server"

	maxReal    = 3 * time.Minute // for one crowd
	maxStarted = 30 * time.Second
)

const realHead = `# Real clients

%s writes this page. The example server is one process. In another process, %d clients ask for /v1/exports, each from a
loopback address of its own. One token bucket of %d/s counts them all. All begin at once, and each wants one success. The rows "simulated"
have the same crowd in simulated time. Machine: %d processors, %s/%s, %s.

The server always sends slots. A client that waits a constant second, or uses full jitter alone, does not read them. A denial is a 503 here,
because the policy is the capacity of all clients. Simulated round trips are longer than round trips over loopback. With full jitter, the time
depends on the unluckiest client.

`

// fewer is the crowd of the real experiment.
var fewer = setting{name: "real", clients: 200, wants: 1, within: 10 * time.Millisecond}

// realPage runs the experiment.
func realPage(t *testing.T) (string, error) {
	var results []result
	for _, k := range []kind{everySecond, randomly, slots, slotsOurs} { // without Pace: the example does not advertise its limit
		r := simulate(t, fewer, k, shown)
		if r.failed != nil {
			return "", fmt.Errorf("%s, simulated: %w", k.name, r.failed)
		}
		r.kind += ", simulated"
		real, err := fewer.ask(t.Context(), t.TempDir(), k)
		if err != nil {
			return "", fmt.Errorf("%s: %w", k.name, err)
		}
		real.kind = k.name + ", real"
		results = append(results, r, real)
	}
	page := fmt.Sprintf(realHead, "`make herd-real`", fewer.clients, rate,
		runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	return page + table(results, nil), nil
}

// ask runs a crowd of a kind against a fresh example server.
func (s setting) ask(ctx context.Context, dir string, k kind) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, maxReal)
	defer cancel()
	url, stop, err := startExample(ctx, dir)
	if err != nil {
		return result{}, err
	}
	defer stop()
	var all sync.WaitGroup
	var mu sync.Mutex // guards r and errs
	r, begin, errs := result{kind: k.name}, time.Now(), []error(nil)
	for i := range s.clients {
		all.Go(func() {
			c := newRealClient(i, url)
			defer c.http.CloseIdleConnections()
			err := c.try(ctx, k, func(served bool) {
				mu.Lock()
				defer mu.Unlock()
				r.count(time.Since(begin), served)
			})
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	all.Wait()
	return r, errors.Join(errs...)
}

// A realClient is a client with an address of its own.
type realClient struct {
	*visitor
	http http.Client
	url  string
}

func newRealClient(number int, url string) *realClient {
	from := &net.TCPAddr{IP: net.IPv4(127, 0, byte(1+number>>8), byte(number))}
	c := &realClient{url: url + "/v1/exports", visitor: newVisitor(number, 1, shown)}
	c.http.Transport = &http.Transport{DialContext: (&net.Dialer{LocalAddr: from}).DialContext}
	return c
}

// try asks until the client is served, and reports each response.
func (c *realClient) try(ctx context.Context, k kind, report func(served bool)) error {
	if k.transport != nil {
		return insist(ctx, k.transport, c.url, c.wants, func(r *http.Request) (*http.Response, error) {
			resp, err := c.http.Transport.RoundTrip(r)
			if err == nil {
				report(resp.StatusCode == http.StatusOK)
			}
			return resp, err
		})
	}
	for {
		served, hint, err := c.ask(ctx)
		if err != nil {
			return err
		}
		report(served)
		if served {
			return nil
		}
		c.tries++
		select {
		case <-time.After(k.client(hint, c.tries, c.draw)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ask sends one request.
func (c *realClient) ask(ctx context.Context) (served bool, hint time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return false, 0, err
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return false, 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	err = errors.Join(err, resp.Body.Close())
	switch resp.StatusCode {
	case http.StatusOK, http.StatusServiceUnavailable:
		hint, _ = client.RetryAfter(resp)
		return resp.StatusCode == http.StatusOK, hint, err
	default:
		return false, 0, errors.Join(err, fmt.Errorf("got status %s", resp.Status))
	}
}

// startExample builds and starts the example server, and returns its URL.
func startExample(ctx context.Context, dir string) (url string, stop func(), err error) {
	program := filepath.Join(dir, "chi-server")
	root, err := product.Dir(ctx)
	if err != nil {
		return "", nil, err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
	build.Dir = filepath.Join(root, example)
	if out, err := build.CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("go build: %w: %s", err, out)
	}
	server := exec.CommandContext(ctx, program, "-addr", "127.0.0.1:0")
	log, err := server.StderrPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		return "", nil, err
	}
	stop = func() { _ = server.Process.Kill(); _ = server.Wait() }
	urls := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if _, rest, found := strings.Cut(lines.Text(), " url="); found {
				urls <- strings.Fields(rest)[0]
			}
		}
	}()
	select {
	case url = <-urls:
		return url, stop, nil
	case <-time.After(maxStarted):
	case <-ctx.Done():
	}
	stop()
	return "", nil, errors.New("the example server did not start")
}
