package algorithms

import (
	"fmt"
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/draw"
)

// TestTakesAreCalls: takes answers and stores as the general case does.
func TestTakesAreCalls(t *testing.T) {
	limits := []Limit{
		TokenBucket(5, time.Second), TokenBucket(3, time.Minute).WithBurst(7), LeakyBucket(4, time.Second), FixedWindow(5, time.Second),
		SlidingWindowCounter(6, time.Second), PerDay(9, nil),
	}
	draw.Check(t, func(t *testing.T, v *draw.Values) {
		now := time.Unix(1_700_000_000, 0)
		o := &MemoryOptions{MaxKeys: 200, Now: func() time.Time { return now }}
		short, general := NewMemory(o), NewMemory(o)
		decided := 0
		for range v.Int(1, 60) {
			now = now.Add(time.Duration(v.Int(-50, 400)) * time.Millisecond)
			checks := make([]Check, v.Int(2, maxTakes))
			policies := [maxTakes]string{"requests-x-of-each-tenant-per-day", "requests-y-of-each-tenant-per-day", "third", "fourth"} // the first two give equal hashes
			for i := range checks {
				checks[i] = Check{
					Policy: policies[i], Key: fmt.Sprint("usr=", v.Int(0, 3)),
					Limit: draw.Of(v, limits...), Cost: v.Int64(0, 4),
				}
			}
			want := append([]Check(nil), checks...)
			if !short.takes(checks) {
				t.Fatal("takes has not decided")
			}
			if err := general.call(want); err != nil {
				t.Fatal(err)
			}
			for i := range checks {
				if checks[i] != want[i] {
					t.Fatalf("call %d: got %+v, want %+v", decided, checks[i], want[i])
				}
			}
			decided++
		}
		if got, want := short.Stats(), general.Stats(); got.Memory != want.Memory {
			t.Errorf("got %+v, want %+v", got.Memory, want.Memory)
		}
	})
}

// TestTakesLeavesOtherCalls: takes does nothing with a call that needs more.
func TestTakesLeavesOtherCalls(t *testing.T) {
	check := func(key string, l Limit, op Op) Check { return Check{Policy: "p", Key: key, Limit: l, Cost: 1, Op: op} }
	bucket := TokenBucket(5, time.Hour)
	for name, checks := range map[string][]Check{
		"one key twice": {check("a", bucket, Take), check("a", bucket, Take)},
		"a trial":       {check("a", bucket, Take), check("b", bucket, Trial)},
		"a log":         {check("a", bucket, Take), check("b", SlidingWindowLog(5, time.Hour), Take)},
		"concurrent":    {check("a", bucket, Take), check("b", Concurrent(5, time.Hour), Take)},
		"nobody":        {check("a", bucket, Take), check("b", Nobody(), Take)},
		"invalid":       {check("a", bucket, Take), check("", bucket, Take)},
		"settlements":   {check("a", bucket, Return), check("b", bucket, Return)},
	} {
		m := NewMemory(nil)
		if m.takes(checks) || m.Stats().Memory.Keys != 0 || checks[0].Decision != (Decision{}) {
			t.Errorf("%s: takes has decided", name)
		}
	}
	full := NewMemory(&MemoryOptions{MaxKeys: 1})
	calls := 0
	for i := range 20 {
		checks := []Check{check(fmt.Sprint("a", i), bucket, Take), check(fmt.Sprint("b", i), bucket, Take)}
		if !full.takes(checks) {
			calls++
		}
	}
	if calls == 0 {
		t.Error("takes has found room in a full Memory")
	}
}
