// Tests of dismissed findings.

package ratelimit_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

// TestDismiss: a dismissed finding stays dismissed until it ends; its return is news.
func TestDismiss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		expensive := byIP("p", algorithms.TokenBucket(5, time.Second))
		expensive.Cost = costOf(6)
		m := newMiddleware(t, newMemory(t), &ratelimit.Options{Logger: quiet}, expensive)
		cause := func() { record(m.Handler(ok), from("192.0.2.1")) }
		dismissed := func() time.Time { return m.Findings()[0].Dismissed }
		if m.Dismiss("PS107", "p") {
			t.Error("a finding was dismissed before it began")
		}
		cause()
		if m.Dismiss("PS107", "q") || m.Dismiss("PS107", "") || m.Dismiss("PS101", "p") || !dismissed().IsZero() {
			t.Error("another finding was dismissed, or this one by another name")
		}
		time.Sleep(time.Minute)
		if !m.Dismiss("PS107", "p") || !dismissed().Equal(time.Now()) {
			t.Errorf("got dismissed at %v, want now", dismissed())
		}
		cause()
		if err := m.Update(expensive); err != nil {
			t.Fatal(err)
		}
		cause()
		if dismissed().IsZero() {
			t.Error("a request, or an Update, has brought a dismissed finding back")
		}
		time.Sleep(2 * time.Hour)
		cause()
		if !dismissed().IsZero() {
			t.Error("the return of the finding is not new")
		}
	})
}
