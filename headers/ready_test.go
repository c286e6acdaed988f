package headers_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/penstock-go/penstock/headers"
)

// TestReadyItems makes sure that a quota with ready items and scalars sends the same
// lines as a quota without, while four goroutines use the first.
func TestReadyItems(t *testing.T) {
	const all = headers.Draft | headers.SeparateFields | headers.XRateLimit
	used := bucket(t, "a", 200, time.Minute)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			var bare headers.Quota
			if err := bare.Set(bucketOf(200, 200, time.Minute)); err != nil {
				t.Error(err)
			}
			random := rand.New(rand.NewPCG(7, uint64(g)))
			for range 2_000 {
				s := headers.State{Quota: used, Remaining: random.Int64N(200), ResetAfter: time.Duration(random.Int64N(60e9)), UnitAfter: time.Second}
				response := admitted
				if random.IntN(4) == 0 {
					response, s.Denied, s.RetryAfter = denied, true, time.Duration(random.Int64N(300e9))
				}
				if s.Denied && random.IntN(10) == 0 {
					s.RetryAfter = headers.Never
				}
				now := at.Add(time.Duration(random.Int64N(3e9)))
				lines := func(q *headers.Quota) string {
					s.Quota = q
					resp := response(s)
					resp.Now = now
					return dump(write(all, resp))
				}
				if got, want := lines(used), lines(&bare); got != want {
					t.Errorf("got\n%swant\n%s", got, want)
				}
			}
		})
	}
	wg.Wait()
}

// TestReadyScalarsOfLongNumbers: the text of numbers that do not fit beside their lines is whole.
func TestReadyScalarsOfLongNumbers(t *testing.T) {
	const most = 999_999_999_999_999
	resp := admitted(headers.State{Quota: bucket(t, "a", most, time.Second), Remaining: most, ResetAfter: time.Second})
	resp.Now = time.Unix(9_000_000_000_000_000_000, 0)
	h := write(headers.XRateLimit, resp)
	if got := h.Get("X-RateLimit-Remaining") + " " + h.Get("X-RateLimit-Reset"); got != "999999999999999 9000000000000000001" {
		t.Errorf("got %s", got)
	}
}
