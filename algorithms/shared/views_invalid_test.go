// A remembered denial answers no invalid call.

package shared

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

func TestInvalidCallsAreErrorsBesideRememberedDenials(t *testing.T) {
	limit := algorithms.TokenBucket(1, time.Hour)
	known := checkOf("usr=1", limit, 2)
	many := []algorithms.Check{known}
	for i := range 1_000 {
		many = append(many, checkOf("usr="+strconv.Itoa(i), limit, 1))
	}
	tests := map[string][]algorithms.Check{
		"a zero limit":                 {known, checkOf("usr=2", algorithms.Limit{}, 1)},
		"a zero limit before":          {checkOf("usr=1", algorithms.Limit{}, 1), known},
		"an empty key":                 {known, checkOf("", limit, 1)},
		"a bad policy":                 {known, {Policy: "a b", Key: "usr=1", Limit: limit, Cost: 1}},
		"an unknown op":                {known, {Policy: "default", Key: "usr=1", Limit: limit, Cost: 1, Op: 99}},
		"a settlement":                 {known, {Policy: "default", Key: "usr=1", Limit: limit, Op: algorithms.Reset}},
		"a negative cost":              {known, checkOf("usr=2", limit, -1)},
		"a negative cost of the need":  {checkOf("usr=1", limit, 3), checkOf("usr=1", limit, -1)},
		"nanoseconds beyond the limit": {checkOf("usr=1", algorithms.TokenBucket(1, time.Hour+1), 2)},
		"too many checks":              many,
	}
	for name, checks := range tests {
		d := newDenied()
		for range 2 {
			if got := take(t, d, "usr=1", limit, 2); got.Allowed {
				t.Fatalf("%s: got %+v, want a denial to remember", name, got)
			}
		}
		if d.hits() != 1 {
			t.Fatalf("%s: got %d hits, want the second denial from memory", name, d.hits())
		}
		if err := d.Allow(t.Context(), slices.Clone(checks)); !errors.Is(err, algorithms.ErrInvalid) || d.hits() != 1 {
			t.Errorf("%s: got %v and %d hits, want ErrInvalid", name, err, d.hits())
		}
	}
}
