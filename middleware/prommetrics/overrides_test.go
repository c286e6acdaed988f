// Tests of the overrides as metrics.

package prommetrics_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
	"github.com/penstock-go/penstock/middleware/prommetrics"
)

// TestOverrides: overrides and bans in force are gauges, also those of all policies. Middlewares that share a table
// count it once.
func TestOverrides(t *testing.T) {
	reg, table := prometheus.NewRegistry(), overrides.NewMemory()
	metrics := ratelimit.Must(prommetrics.New(reg, nil))
	o := &ratelimit.Options{Overrides: table, Observers: []ratelimit.Observer{metrics}}
	for _, name := range []string{"p", "q"} {
		ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), o, ratelimit.Policy{Name: name, Key: keyfunc.Peer(), Limit: algorithms.TokenBucket(1, 1e9)}))
	}
	for place, mode := range map[[2]string]ratelimit.Mode{
		{"p", "ip=192.0.2.1"}: ratelimit.ModeBanned, {"p", "ip=192.0.2.2"}: ratelimit.ModeBanned,
		{"p", "*"}: ratelimit.ModeShadow, {"*", "ip=192.0.2.3"}: ratelimit.ModeBanned, {"elsewhere", "ip=192.0.2.1"}: ratelimit.ModeBanned,
	} {
		if err := table.Set(t.Context(), place[0], place[1], ratelimit.Override{Mode: mode}); err != nil {
			t.Fatal(err)
		}
	}
	got, _ := gather(t, reg)
	for place, want := range map[string]float64{"mode=banned,policy=*": 1, "mode=banned,policy=p": 2, "mode=banned,policy=q": 0, "mode=shadow,policy=p": 1} {
		name := "ratelimit_overrides{" + place + "}"
		if n, found := got[name]; !found || n != want {
			t.Errorf("%s: got %v, %t, want %v", name, n, found, want)
		}
		delete(got, name)
	}
	for name := range got {
		if strings.HasPrefix(name, "ratelimit_overrides{") {
			t.Errorf("got %s, want no series of other policies and modes", name)
		}
	}
}
