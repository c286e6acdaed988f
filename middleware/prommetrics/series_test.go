// The test of the number of series.

package prommetrics_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/redistest"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// TestSeries: fifty policies with twenty tiers each have at most 6 000 series, in memory and with Redis.
func TestSeries(t *testing.T) {
	var policies []ratelimit.Policy
	for i := range 50 {
		p := byIP(fmt.Sprint("p", i), hourly)
		p.Key, p.Tiers = tenant, make(map[string]algorithms.Limit)
		for j := range 20 {
			p.Tiers[fmt.Sprint("t", j)] = algorithms.TokenBucket(int64(j+1), time.Minute)
		}
		policies = append(policies, p)
	}
	redis := ratelimit.Must(shared.New(redistest.Script(nil), &shared.Options{Logger: quiet}))
	defer redis.Close()
	for name, limiter := range map[string]algorithms.Limiter{"memory": newMemory(t), "redis": redis} {
		reg := prometheus.NewRegistry()
		newMiddleware(t, limiter, newMetrics(t, reg), policies...)
		_, series := scrape(t, reg)
		if series > 6000 {
			t.Errorf("%s: got %d series, want at most 6 000", name, series)
		}
		t.Logf("%s: %d series", name, series)
	}
}

// scrape returns the number of lines of a scrape: a classic histogram has one for each bucket, its sum and its count.
func scrape(t *testing.T, g prometheus.Gatherer) (families, series int) {
	t.Helper()
	all, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		for _, m := range f.GetMetric() {
			series++
			if h := m.GetHistogram(); h != nil {
				series += len(h.GetBucket()) + 2
			}
		}
	}
	return len(all), series
}

// TestSeriesOfPairs: only policies of pairs have the outcomes of pairs, and before the first request.
func TestSeriesOfPairs(t *testing.T) {
	reg := prometheus.NewRegistry()
	shared := byIP("shared", hourly)
	shared.Key, shared.ShareBy = keyfunc.Const("all"), tenant
	plan, credits, other := byIP("plan", hourly), byIP("credits", hourly), byIP("other", hourly)
	credits.After = "plan"
	newMiddleware(t, newMemory(t), newMetrics(t, reg), shared, plan, credits, other)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			values := map[string]string{}
			for _, l := range m.GetLabel() {
				values[l.GetName()] = l.GetValue()
			}
			if o := values["outcome"]; o == "borrowed" || o == "spared" {
				got = append(got, values["policy"]+" "+o)
			}
		}
	}
	slices.Sort(got)
	if want := []string{"credits spared", "plan spared", "shared borrowed"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
