package statuspage_test

import (
	"context"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/statuspage"
)

// A surveyed limiter notes the contexts in which a page reads its findings.
type surveyed struct {
	*algorithms.Memory
	mu       sync.Mutex
	findings []error // of these contexts
}

func (l *surveyed) Findings(ctx context.Context) []algorithms.Finding {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.findings = append(l.findings, ctx.Err())
	return nil
}

// TestRenderedOnceASecond: all who read a page within a second get the same bytes in each form. A µs before the second
// has passed, the page is still the same; then it is up to date.
func TestRenderedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, other := statuspage.New(nil), statuspage.New(nil)
		limiter := &surveyed{Memory: algorithms.NewMemory(nil)}
		m := shownOn(t, page, limiter, ratelimit.Options{}, byIP("p", hourly))
		shownOn(t, other, algorithms.NewMemory(nil), ratelimit.Options{}, byIP("q", hourly))
		forms := []string{"/", "/?reload", "/?format=json"}
		first := make(map[string]string)
		for range 3 {
			var all sync.WaitGroup
			var mu sync.Mutex
			clear(first)
			for range 100 {
				for _, form := range forms {
					all.Go(func() {
						body := record(page, httptest.NewRequest("GET", form, nil)).Body.String()
						mu.Lock()
						defer mu.Unlock()
						if first[form] == "" {
							first[form] = body
						}
						if body != first[form] {
							t.Errorf("%s: two requests of one second got different bytes", form)
						}
					})
				}
			}
			all.Wait()
			record(m.Handler(ok), from("192.0.2.1"))
			synctest.Wait()
			time.Sleep(time.Second - time.Microsecond)
			for _, form := range forms {
				if body := record(page, httptest.NewRequest("GET", form, nil)).Body.String(); body != first[form] {
					t.Errorf("%s: the page changed within a second", form)
				}
			}
			time.Sleep(time.Microsecond)
		}
		if len(limiter.findings) != 3 {
			t.Errorf("the page asked the limiter %d times in 3 s, want 3 times", len(limiter.findings))
		}
		if v := look(t, page); v.Requests != 3 || v.policies()[0] != "p" {
			t.Errorf("got %d requests of %v after a second, want 3 of p", v.Requests, v.policies())
		}
		if v := look(t, other); v.Requests != 0 || v.policies()[0] != "q" {
			t.Errorf("got %d requests of %v on the other page, want 0 of q", v.Requests, v.policies())
		}
	})
}

// TestRenderedForOthers: a reader that hangs up does not spoil the page of the others.
func TestRenderedForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, limiter := statuspage.New(nil), &surveyed{Memory: algorithms.NewMemory(nil)}
		shownOn(t, page, limiter, ratelimit.Options{}, byIP("p", hourly))
		gone, hangUp := context.WithCancel(t.Context())
		hangUp()
		record(page, httptest.NewRequest("GET", "/", nil).WithContext(gone))
		if len(limiter.findings) != 1 || limiter.findings[0] != nil {
			t.Errorf("got contexts with errors %v, want one without", limiter.findings)
		}
	})
}

// A slowly is a limiter whose findings take two seconds.
type slowly struct{ surveyed }

func (l *slowly) Findings(ctx context.Context) []algorithms.Finding {
	time.Sleep(2 * time.Second)
	return l.surveyed.Findings(ctx)
}

// TestSlowPage: a page that takes longer than a second is shown for a second after it is ready.
func TestSlowPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, limiter := statuspage.New(nil), &slowly{surveyed{Memory: algorithms.NewMemory(nil)}}
		shownOn(t, page, limiter, ratelimit.Options{}, byIP("p", hourly))
		for range 3 {
			record(page, httptest.NewRequest("GET", "/", nil))
			time.Sleep(300 * time.Millisecond)
		}
		if n := len(limiter.findings); n != 1 {
			t.Errorf("the page asked the limiter %d times, want once", n)
		}
	})
}
