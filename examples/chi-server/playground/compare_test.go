// Tests of the comparison.

package playground

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	type row struct {
		algorithm                 string
		admitted, denied, fullest int
	}
	tests := []struct {
		query string
		want  []row
	}{
		{"traffic=steady&requests=10&burst=10", []row{
			{"fixed-window", 30, 0, 10},
			{"sliding-window-counter", 28, 2, 10}, // it is an approximation
			{"sliding-window-log", 30, 0, 10},
			{"token-bucket", 30, 0, 10},
			{"leaky-bucket", 30, 0, 10},
		}},
		{"traffic=edge&requests=10&burst=5", []row{
			{"fixed-window", 20, 0, 20},
			{"sliding-window-counter", 11, 9, 11},
			{"sliding-window-log", 10, 10, 10},
			{"token-bucket", 8, 12, 8}, // and three came back meanwhile
			{"leaky-bucket", 8, 12, 8},
		}},
		{"traffic=overload&requests=10&burst=10", []row{
			{"fixed-window", 30, 30, 10},
			{"sliding-window-counter", 28, 32, 10},
			{"sliding-window-log", 30, 30, 10},
			{"token-bucket", 39, 21, 19}, // burst and rate
			{"leaky-bucket", 39, 21, 10}, // those come in, and leave at the rate
		}},
	}
	for _, tt := range tests {
		status, _, body := s.send(t, "GET /demo/compare?"+tt.query, "")
		var c comparison
		if err := json.Unmarshal([]byte(body), &c); err != nil || status != http.StatusOK {
			t.Fatalf("%s: got %d and %v, want a comparison", tt.query, status, err)
		}
		var got []row
		for _, r := range c.Results {
			got = append(got, row{r.Algorithm, r.Admitted, r.Denied, r.Fullest})
			if len(r.Allowed) != len(c.Arrivals) || len(r.Served) != r.Admitted || !slices.IsSorted(r.Served) {
				t.Errorf("%s: %s: got %d answers and %d served of %d", tt.query, r.Algorithm, len(r.Allowed), len(r.Served), len(c.Arrivals))
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.query, got, tt.want)
		}
		if _, _, again := s.send(t, "GET /demo/compare?"+tt.query, ""); again != body {
			t.Errorf("%s: got another result the second time", tt.query)
		}
	}
}

func TestCompareBounds(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for query, want := range map[string]int{
		"traffic=overload&requests=100&burst=100":           200,
		"traffic=overload&requests=101&burst=100":           400,
		"traffic=overload&requests=100&burst=101":           400,
		"traffic=overload&requests=0&burst=1":               400,
		"traffic=overload&requests=1&burst=-1":              400,
		"traffic=overload&requests=1":                       400,
		"traffic=other&requests=1&burst=1":                  400,
		"traffic=edge&requests=9223372036854775808&burst=1": 400,
	} {
		if got, _, body := s.send(t, "GET /demo/compare?"+query, ""); got != want {
			t.Errorf("%s: got %d %.100s, want %d", query, got, body, want)
		}
	}
	for name, traffic := range traffics {
		if n := len(traffic.arrivals(maxUnits, compared)); n > 1_000 {
			t.Errorf("%s: got %d requests, want 1000 at most", name, n)
		}
	}
}

func TestFullest(t *testing.T) {
	t.Parallel()
	tests := []struct {
		served []time.Duration
		begin  time.Duration
		most   int
	}{
		{nil, 0, 0},
		{[]time.Duration{5}, 5, 1},
		{[]time.Duration{0, 10}, 0, 1}, // a window apart
		{[]time.Duration{0, 9}, 0, 2},
		{[]time.Duration{0, 8, 9, 10, 17, 18}, 8, 4},
		{[]time.Duration{1, 1, 1, 30, 31}, 1, 3},
	}
	for _, tt := range tests {
		if begin, most := fullest(tt.served, 10); begin != tt.begin || most != tt.most {
			t.Errorf("%v: got %d from %d on, want %d from %d on", tt.served, most, begin, tt.most, tt.begin)
		}
	}
}
