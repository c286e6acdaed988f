package shared

import (
	"strconv"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

func TestStack(t *testing.T) {
	server := redistest.Start(t)
	if _, err := algorithms.NewShared(nil, &Options{DenyCacheKeys: -2}); err == nil {
		t.Error("two mistakes are no error")
	}
	for _, keys := range []int{0, 10, algorithms.DenyCacheOff} {
		s, err := algorithms.NewShared(server.Client(), &Options{
			Redis: algorithms.RedisOptions{Prefix: "p" + strconv.Itoa(keys)}, DenyCacheKeys: keys,
		})
		if err != nil {
			t.Fatal(err)
		}
		limit := algorithms.FixedWindow(1, 24*time.Hour)
		for range 5 {
			take(t, s, "usr=1", limit)
		}
		want := algorithms.StackStats{Denied: 3, DeniedKeys: 1}
		if keys == algorithms.DenyCacheOff {
			want = algorithms.StackStats{}
		}
		got := s.Stats()
		if got.Denied != want.Denied || got.DeniedKeys != want.DeniedKeys || got.Redis.Checks != 5-want.Denied {
			t.Errorf("DenyCacheKeys %d: got %+v", keys, got)
		}
	}
}
