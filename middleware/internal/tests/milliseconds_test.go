// Tests of waits below a second.

package tests

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/middleware"
)

// TestMillisecondsLoseLittle: with Retry-After-Ms, a client of 10 per second with a burst of 2 uses nine tenths of the limit or
// more. Whole seconds leave it 2 per second.
func TestMillisecondsLoseLittle(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		dialect     headers.Dialect
		least, most time.Duration // for 80 requests; the limit allows 7.8 s
	}{
		{headers.Draft | headers.Milliseconds, 7800 * time.Millisecond, 8580 * time.Millisecond},
		{headers.Draft, 38 * time.Second, 40 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := byIP("ten", algorithms.TokenBucket(10, time.Second).WithBurst(2))
			m := newMiddleware(t, newMemory(t), &ratelimit.Options{Headers: tt.dialect}, p)
			if found := m.Findings(); (len(found) == 1 && found[0].Code == "PS117") != (tt.dialect&headers.Milliseconds == 0) {
				t.Errorf("%v: got %v, want PS117 where clients wait for whole seconds", tt.dialect, found)
			}
			h := m.Handler(ok)
			begin := time.Now()
			for served := 0; served < 80; {
				w := record(h, from("192.0.2.1"))
				if w.Code == http.StatusOK {
					served++
					continue
				}
				time.Sleep(headers.Read(w.Code, w.Header(), time.Now()).Wait)
			}
			if took := time.Since(begin); took < tt.least || took > tt.most {
				t.Errorf("%v: got %v, want %v to %v", tt.dialect, took, tt.least, tt.most)
			}
		})
	}
}
