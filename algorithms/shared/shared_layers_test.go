// Which layers a Limiter has.

package shared

import (
	"strconv"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

func TestDenyCacheKeys(t *testing.T) {
	server := redistest.Start(t)
	if _, err := New(nil, &Options{DenyCacheKeys: -2}); err == nil {
		t.Error("two mistakes are no error")
	}
	for _, keys := range []int{0, 10, DenyCacheOff} {
		l := must(t, server.Client(), &Options{Prefix: "p" + strconv.Itoa(keys), DenyCacheKeys: keys, Deadline: time.Minute})
		limit := algorithms.FixedWindow(1, 24*time.Hour)
		var asked, wantHits uint64 = 0, 3 // a denial is remembered for a second
		if keys == DenyCacheOff {
			wantHits = 0
		}
		for asked < 5 || l.Stats().DenyCache.Hits < wantHits {
			take(t, l, "usr=1", limit, 1)
			asked++
		}
		got := l.Stats()
		if remembers := got.DenyCache.Keys == 1; remembers != (wantHits > 0) || got.Redis.Checks != asked-got.DenyCache.Hits ||
			wantHits == 0 && got.DenyCache.Hits > 0 {
			t.Errorf("DenyCacheKeys %d: got %+v of %d takes", keys, got, asked)
		}
	}
}
