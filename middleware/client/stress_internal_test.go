// Random servers, options, deadlines and bodies: what holds whatever happens. Packages outside cannot see the lanes.

package client

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// A moody server answers, denies, fails, panics, or hangs. It notes the latest stated wait of each partition.
type moody struct {
	t      *testing.T
	random *rand.Rand
	bodies atomic.Int64 // that are open

	mu    sync.Mutex
	until map[string]time.Time
	known map[string]time.Time // when the wait was stated
}

// A counted body counts as open until its first Close.
type counted struct {
	io.Reader
	open *atomic.Int64
	once sync.Once
}

func (b *counted) Close() error {
	b.once.Do(func() { b.open.Add(-1) })
	return nil
}

func (m *moody) body(text string) io.ReadCloser {
	m.bodies.Add(1)
	return &counted{Reader: strings.NewReader(text), open: &m.bodies}
}

func (m *moody) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer req.Body.Close()
	}
	key := req.Header.Get("Key")
	m.mu.Lock()
	now := time.Now()
	if now.Before(m.until[key]) && now.After(m.known[key]) {
		m.t.Errorf("a request left %v before the end of a stated wait", m.until[key].Sub(now))
	}
	what, latency := m.random.IntN(20), time.Duration(m.random.Int64N(int64(200*time.Millisecond)))
	wait := m.random.IntN(4)
	m.mu.Unlock()
	pause := time.NewTimer(latency)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: req}
	switch what {
	case 0:
		return nil, errors.New("connection reset")
	case 1:
		<-req.Context().Done()
		return nil, req.Context().Err()
	case 2:
		panic("on purpose")
	case 3, 4:
		resp.StatusCode = http.StatusTooManyRequests
	case 5:
		resp.StatusCode = http.StatusServiceUnavailable
	case 6, 7, 8:
		resp.StatusCode = http.StatusTooManyRequests
		resp.Header.Set("Retry-After", strconv.Itoa(wait))
		m.mu.Lock()
		if until := time.Now().Add(time.Duration(wait) * time.Second); until.After(m.until[key]) {
			m.until[key], m.known[key] = until, time.Now()
		}
		m.mu.Unlock()
	}
	resp.Body = m.body("text")
	return resp, nil
}

// TestWhateverHappens: no request leaves before a stated wait is over, all bodies are closed, no request stays in a queue,
// and each request ends soon after its deadline.
func TestWhateverHappens(t *testing.T) {
	limits := []algorithms.Limit{
		{}, algorithms.TokenBucket(20, time.Second).WithBurst(2), algorithms.LeakyBucket(20, time.Second).WithBurst(10),
		algorithms.Concurrent(4, time.Minute), algorithms.SlidingWindowLog(20, time.Second),
	}
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 33))
			server := &moody{t: t, random: rand.New(rand.NewPCG(seed, 34)), until: map[string]time.Time{}, known: map[string]time.Time{}}
			o := &Options{
				Pace: seed%2 == 0, Limit: limits[seed%5], MaxWait: time.Minute,
				Partition: func(r *http.Request) string { return r.Header.Get("Key") },
				Retry:     func(*http.Request) bool { return true },
			}
			if o.Limit != (algorithms.Limit{}) {
				o.Limiter = algorithms.NewMemory(nil)
			}
			transport, err := NewTransport(server, o)
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for range 60 {
				deadline := time.Duration(random.Int64N(int64(20 * time.Second)))
				start := time.Duration(random.Int64N(int64(10 * time.Second)))
				key := strconv.Itoa(random.IntN(2))
				wg.Go(func() {
					time.Sleep(start)
					server.request(transport, key, deadline)
				})
			}
			wg.Wait()
			if open := server.bodies.Load(); open != 0 {
				t.Errorf("seed %d: %d bodies are open", seed, open)
			}
			for key, l := range transport.lanes {
				if l.users != 0 || len(l.all.queue) != 0 {
					t.Errorf("seed %d: %s has %d users, and %d requests in its queue", seed, key, l.users, len(l.all.queue))
				}
			}
		})
	}
}

// request sends a request with a body, and ends as callers do.
func (m *moody) request(transport *Transport, key string, deadline time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	begun := time.Now()
	defer func() {
		_ = recover() // the server has panicked on purpose
		if took := time.Since(begun); took > deadline+drainTime {
			m.t.Errorf("a request with a deadline of %v took %v", deadline, took)
		}
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://api.example.com/", m.body("question"))
	if err != nil {
		m.t.Fatal(err)
	}
	req.GetBody = func() (io.ReadCloser, error) { return m.body("question"), nil }
	req.Header.Set("Key", key)
	resp, err := transport.RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close() // it does not fail
	}
}
