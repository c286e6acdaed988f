package prommetrics_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/prommetrics"
)

// TestNamedClients: a named client has a series with its name, also before its first denial. No key becomes a label.
func TestNamedClients(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics := ratelimit.Must(prommetrics.New(registry, &prommetrics.Options{Clients: map[string]string{"ip=192.0.2.1": "acme", "ip=192.0.2.2": "globex"}}))
	m := ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), &ratelimit.Options{Observers: []ratelimit.Observer{metrics}},
		ratelimit.Policy{Name: "p", Limit: algorithms.TokenBucket(1, time.Hour)}))
	for _, ip := range []string{"192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.9", "192.0.2.9"} {
		if _, err := m.Check(from(ip)); err != nil {
			t.Fatal(err)
		}
	}
	values, _ := gather(t, registry)
	wants(t, values, map[string]float64{"ratelimit_client_denials{client=acme,policy=p}": 2, "ratelimit_client_denials{client=globex,policy=p}": 0})
	for series := range values {
		if strings.Contains(series, "192.0.2") {
			t.Errorf("got a key in %s", series)
		}
	}
}

func TestBadClients(t *testing.T) {
	many := make(map[string]string)
	for i := range 51 {
		many[fmt.Sprint("usr=", i)] = fmt.Sprint(i)
	}
	for want, clients := range map[string]map[string]string{
		"51 clients: want at most 50": many, "no first part of a key": {"42": "acme"}, "empty": {"usr=1": ""}, "another client's": {"usr=1": "a", "usr=2": "a"},
		"such as usr=42": {"usr=1|rt=a": "acme"},
	} {
		if _, err := prommetrics.New(prometheus.NewRegistry(), &prommetrics.Options{Clients: clients}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
