// Tests of the comparison.

package playground

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/examples/chi-server/playground/instruments"
)

// seven are the limits on the page, of ten requests a minute.
var seven = []string{
	"token-bucket 10/1m", "leaky-bucket 10/1m", "sliding-window-counter 10/1m", "sliding-window-log 10/1m", "fixed-window 10/1m",
	"calendar-window 10/day", "concurrent 3/30s",
}

// times writes n instants, evenly from a second on, as the page sends them.
func times(n int, from, span float64) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(int((from+span*float64(i)/float64(n))*1000)))
	}
	return strings.Join(all, ",")
}

func compareQuery(at string, limits ...string) string {
	return "GET /demo/compare?" + url.Values{"limit": limits, "at": {at}}.Encode()
}

func TestCompare(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	type row struct{ admitted, denied, fullest int }
	for _, tt := range []struct {
		traffic, at string
		want        []row // of seven
	}{
		{"as many as the limit", times(30, 0, 180), []row{{30, 0, 10}, {30, 0, 10}, {28, 2, 10}, {30, 0, 10}, {30, 0, 10}, {20, 10, 10}, {30, 0, 10}}},
		{"around the turn of a minute, and of the day", times(20, 50, 20), []row{{13, 7, 13}, {13, 7, 10}, {11, 9, 11}, {10, 10, 10}, {20, 0, 20}, {20, 0, 20}, {15, 5, 15}}},
		{"twice the limit", times(60, 0, 180), []row{{39, 21, 19}, {39, 21, 10}, {28, 32, 10}, {30, 30, 10}, {30, 30, 10}, {20, 40, 10}, {60, 0, 20}}},
	} {
		status, _, body := s.send(t, compareQuery(tt.at, seven...), "")
		var c instruments.Comparison
		if err := json.Unmarshal([]byte(body), &c); err != nil || status != http.StatusOK {
			t.Fatalf("%s: got %d and %v, want a comparison", tt.traffic, status, err)
		}
		var got []row
		for _, r := range c.Results {
			denied := 0
			for i, allowed := range r.Allowed {
				if !allowed {
					denied++
				}
				if allowed != (r.Retry[i] == 0) {
					t.Errorf("%s: %s: request %d: got allowed %v and a wait of %v ms", tt.traffic, r.Limit, i, allowed, r.Retry[i])
				}
			}
			got = append(got, row{len(r.Served), denied, r.Fullest})
			if !slices.IsSorted(r.Served) || !slices.IsSortedFunc(r.State, func(a, b [2]float64) int { return int(a[0] - b[0]) }) {
				t.Errorf("%s: %s: got times that are not in order", tt.traffic, r.Limit)
			}
			for _, state := range r.State {
				if state[1] < 0 || state[1] > float64(r.Capacity) {
					t.Errorf("%s: %s: got %v units in use of %d", tt.traffic, r.Limit, state[1], r.Capacity)
				}
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.traffic, got, tt.want)
		}
		if _, _, again := s.send(t, compareQuery(tt.at, seven...), ""); again != body {
			t.Errorf("%s: got another result the second time", tt.traffic)
		}
	}
}

// TestStates: the units in use follow each algorithm: a bucket drains, a window turns, and a request ends.
func TestStates(t *testing.T) {
	t.Parallel()
	for limit, want := range map[string]string{
		"token-bucket 10/1m":           "[[0 2] [6000 1] [12000 0]]",
		"fixed-window 10/1m":           "[[0 2] [60000 0]]",
		"sliding-window-log 10/1m":     "[[0 2] [60000 0]]",
		"calendar-window 10/day":       "[[0 2] [60000 0]]",
		"concurrent 3/30s":             "[[0 2] [4000 0]]",
		"sliding-window-counter 2/10s": "[[0 2] [15000 1] [20000 0]]",
	} {
		_, _, body := start(t, Options{}).send(t, compareQuery("0,0", limit), "")
		var c instruments.Comparison
		if err := json.Unmarshal([]byte(body), &c); err != nil || len(c.Results) != 1 {
			t.Fatalf("%s: got %s", limit, body)
		}
		if got := fmt.Sprint(c.Results[0].State[1:]); got != want {
			t.Errorf("%s: got the states %s, want %s", limit, got, want)
		}
	}
}

func TestCompareBounds(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	for query, want := range map[string]int{
		compareQuery(times(600, 0, 180), "token-bucket 100/1m"):   200,
		compareQuery(times(601, 0, 180), "token-bucket 100/1m"):   400,
		compareQuery("180000", "1/1m"):                            200,
		compareQuery("180001", "1/1m"):                            400,
		compareQuery("1,0", "1/1m"):                               400,
		compareQuery("-1", "1/1m"):                                400,
		compareQuery("", "1/1m"):                                  400,
		compareQuery("0"):                                         400,
		compareQuery("0", append(slices.Clone(seven), "1/1m")...): 400,
		compareQuery("0", "101/1m"):                               400,
		compareQuery("0", "1/1m burst 101"):                       400,
		compareQuery("0", "nobody"):                               400,
		compareQuery("0", "words"):                                400,
		compareQuery("9223372036854775808", "1/1m"):               400,
	} {
		if got, _, body := s.send(t, query, ""); got != want {
			t.Errorf("%.200s: got %d %.100s, want %d", query, got, body, want)
		}
	}
}
