// Limits of concurrent requests in an outage.

package shared

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// Units of running requests are returned and renewed where they were taken. In
// an outage this process admits its share beside what the primary holds, and does
// not hand it back. What the primary holds returns to it before the circuit closes.
func TestFallbackOfConcurrentRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, l := newWorld(t, &Options{Instances: 3}), algorithms.Concurrent(10, 10*time.Hour)
		ofShared := w.take("usr=1", l, 8) // more than half: the memory would start from that for other limits
		w.trip()
		want := func(when string, shared, local int64) {
			t.Helper()
			if s, n := used(t, w.shared.store, "usr=1", l), 3-take(t, w.memory, "usr=1", algorithms.Concurrent(3, 10*time.Hour), 0).Remaining; s != shared || n != local {
				t.Errorf("%s: the primary holds %d and the memory %d, want %d and %d", when, s, n, shared, local)
			}
		}
		ofLocal := w.take("usr=1", l, 2)
		if !ofLocal.Allowed || ofLocal.Source != algorithms.Local || ofLocal.Remaining != 1 {
			t.Fatalf("got %+v, want 2 of a share of 3", ofLocal)
		}
		want("in the outage", 8, 2)
		if d := w.take("usr=1", l, 2); d.Allowed || d.RetryAfter != 10*time.Hour {
			t.Errorf("got %+v, want no more than the share", d)
		}
		d, err := w.settle(algorithms.Check{Key: "usr=1", Limit: l, Op: algorithms.Renew, Cost: 8, Decision: ofShared})
		if err != nil || !d.Allowed || d.Source != algorithms.Undecided || d.Receipt != ofShared.Receipt {
			t.Errorf("a renewal out of reach: got %+v, %v, want it dropped, and the receipt kept", d, err)
		}
		d, err = w.settle(algorithms.Check{Key: "usr=1", Limit: l, Op: algorithms.Return, Cost: 5, Decision: ofShared})
		if err != nil || !d.Allowed || d.Source != algorithms.Undecided || d.Receipt.Units() != 3 {
			t.Errorf("a Return out of reach: got %+v, %v, want it kept, and the rest of the receipt", d, err)
		}
		ofShared.Receipt = d.Receipt
		time.Sleep(time.Second)
		d, err = w.settle(algorithms.Check{Key: "usr=1", Limit: l, Op: algorithms.Renew, Decision: ofLocal})
		if err != nil || d.Source != algorithms.Local || d.Receipt != ofLocal.Receipt || d.ResetAfter != 10*time.Hour {
			t.Errorf("got %+v, %v, want the local take renewed", d, err)
		}
		w.recovers()
		want("after it", 3, 2)
		for _, it := range w.shared.backfilled() {
			if it.Key.Text == "usr=1" {
				t.Errorf("the primary received %+v", it.Item)
			}
		}
		if d, err = w.settle(algorithms.Check{Key: "usr=1", Limit: l, Op: algorithms.Renew, Decision: ofShared}); err != nil || d.Source != algorithms.Shared || d.ResetAfter != 10*time.Hour {
			t.Errorf("got %+v, %v, want the shared take renewed", d, err)
		}
		for of, source := range map[algorithms.Decision]algorithms.Source{ofLocal: algorithms.Local, ofShared: algorithms.Shared} {
			d, err := w.settle(algorithms.Check{Key: "usr=1", Limit: l, Op: algorithms.Return, Cost: 8, Decision: of})
			if err != nil || d.Source != source || d.Receipt.Units() != 0 {
				t.Errorf("got %+v, %v, want what was taken at %v returned there", d, err, source)
			}
		}
		want("with all returned", 0, 0)
	})
}

// A cost above the share but within the limit runs alone.
func TestShareOfConcurrentRequestsAdmitsTheWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		whole := algorithms.Concurrent(8, time.Minute)
		m, l := newMemory(), algorithms.LimitOf(whole.Step().Share(1, 4))
		take(t, m, "usr=1", l, 1)
		time.Sleep(10 * time.Second)
		take(t, m, "usr=1", l, 1)
		d := take(t, m, "usr=1", l, 8)
		if d.Allowed || d.RetryAfter != time.Minute {
			t.Fatalf("got %+v, want a wait until nothing runs", d)
		}
		time.Sleep(d.RetryAfter)
		if d := take(t, m, "usr=1", l, 8); !d.Allowed || d.Receipt.Units() != 8 || d.Remaining != 0 {
			t.Fatalf("got %+v, want all of it", d)
		}
		if d := take(t, m, "usr=1", l, 9); d.Allowed || d.RetryAfter != algorithms.Never {
			t.Errorf("got %+v, want never", d)
		}
	})
}
