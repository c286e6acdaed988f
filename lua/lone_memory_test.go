package lua_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/internal/redistest"
	"github.com/penstock-go/penstock/lua"
)

// Redis refuses the first write of a script if its memory is full, and no later one. So a call is charged as a whole or
// not at all.
func TestCallOfTakesWithoutMemory(t *testing.T) {
	t.Parallel()
	client, script := redistest.Start(t).Client(), redis.NewScript(lua.Source())
	s := &takesScript{limits: []bucketTerms{{r: 1, w: 60_000_000, burst: 100}}}
	s.header(1, 0, 3)
	s.takes = appendDouble(s.takes, 0)
	for _, cost := range []int64{1, 2, 3} {
		s.header(1)
		s.takes = appendDouble(s.takes, cost)
	}
	keys := []string{"a", "b", "c"}
	for _, name := range []string{"fresh keys", "keys with a state"} {
		before := client.MGet(t.Context(), keys...).Val()
		client.ConfigSet(t.Context(), "maxmemory", "1")
		err := script.Run(t.Context(), client, keys, s.args()[:2]...).Err()
		if err == nil || !strings.Contains(err.Error(), "OOM") {
			t.Errorf("%s: got error %v, want OOM", name, err)
		}
		if after := client.MGet(t.Context(), keys...).Val(); !slices.Equal(after, before) {
			t.Errorf("%s: got %v, want %v as before", name, after, before)
		}
		client.ConfigSet(t.Context(), "maxmemory", "0")
		if err := script.Run(t.Context(), client, keys, s.args()[:2]...).Err(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if after := client.MGet(t.Context(), keys...).Val(); slices.Contains(after, nil) || after[0] == before[0] {
			t.Errorf("%s: got %v, want charged states instead of %v", name, after, before)
		}
	}
}
