package tests

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// TestOutcomesCountAtTheirAdmission: a request counts from the instant at which it was admitted, however long it takes.
func TestOutcomesCountAtTheirAdmission(t *testing.T) {
	for _, l := range []algorithms.Limit{
		algorithms.SlidingWindowLog(5, time.Minute), algorithms.SlidingWindowCounter(5, time.Minute),
		algorithms.FixedWindow(5, time.Minute), algorithms.TokenBucket(5, time.Minute),
	} {
		for status, failed := range map[int]int64{401: 2, 200: 0} {
			for takes, counts := range map[time.Duration]bool{10 * time.Second: true, 3 * time.Minute: false} {
				t.Run(fmt.Sprintf("%v/%d/%v", l.Algorithm(), status, takes), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						memory, p := algorithms.NewMemory(nil), newOutcomes(l)
						h := newMiddleware(t, memory, nil, p.Policy).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
							time.Sleep(takes)
							w.WriteHeader(status)
						}))
						for range 2 {
							go record(h, from("192.0.2.1"))
						}
						time.Sleep(takes + time.Second)
						synctest.Wait()
						checks := []algorithms.Check{{Policy: "failures", Key: "ip=192.0.2.1", Limit: l}}
						if err := memory.Allow(t.Context(), checks); err != nil {
							t.Fatal(err)
						}
						want := int64(5)
						if counts {
							want -= failed
						}
						if got := checks[0].Decision.Remaining; got != want {
							t.Errorf("got %d remaining a second after the end, want %d", got, want)
						}
					})
				})
			}
		}
	}
}
