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
		l := must(t, server.Client(), &Options{Prefix: "p" + strconv.Itoa(keys), DenyCacheKeys: keys})
		limit := algorithms.FixedWindow(1, 24*time.Hour)
		for range 5 {
			take(t, l, "usr=1", limit, 1)
		}
		var wantHits uint64 = 3
		wantKeys := 1
		if keys == DenyCacheOff {
			wantHits, wantKeys = 0, 0
		}
		got := l.Stats()
		if got.DenyCache.Hits != wantHits || got.DenyCache.Keys != wantKeys || got.Redis.Checks != 5-wantHits {
			t.Errorf("DenyCacheKeys %d: got %+v", keys, got)
		}
	}
}
