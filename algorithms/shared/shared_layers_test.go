// Which layers a Limiter has.

package shared

import (
	"strconv"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

func TestViews(t *testing.T) {
	server := redistest.Start(t)
	if _, err := New(nil, &Options{Views: -2}); err == nil {
		t.Error("two mistakes are no error")
	}
	for _, keys := range []int{0, 10, ViewsOff} {
		l := must(t, server.Client(), &Options{Prefix: "p" + strconv.Itoa(keys), Views: keys, Deadline: time.Minute})
		limit := algorithms.FixedWindow(1, 24*time.Hour)
		var asked, wantHits uint64 = 0, 3 // a denial is remembered for a second
		if keys == ViewsOff {
			wantHits = 0
		}
		for asked < 5 || l.Stats().Views.Denied < wantHits {
			take(t, l, "usr=1", limit, 1)
			asked++
		}
		got := l.Stats()
		if remembers := got.Views.Keys == 1; remembers != (wantHits > 0) || got.Redis.Checks != asked-got.Views.Denied ||
			wantHits == 0 && got.Views.Denied > 0 {
			t.Errorf("Views %d: got %+v of %d takes", keys, got, asked)
		}
	}
}
