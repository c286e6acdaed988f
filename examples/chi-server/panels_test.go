// The test of the dashboard's panels.

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// wantPanels wants series in each panel of the dashboard, each with a name of its own, and no NaN from a division by
// zero. It waits, because on a busy machine a scrape may fail.
func wantPanels(t *testing.T, p *scraper) {
	t.Helper()
	var d struct{ Panels []panel }
	if err := json.Unmarshal([]byte(read(t, "dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	for _, panel := range d.Panels {
		p.until(t, func() (missing string) { return panel.missing(t, p) })
	}
}

// A panel has the parts of a panel that the test reads.
type panel struct {
	Title   string
	Targets []struct{ Expr, LegendFormat string }
}

// missing returns what the panel lacks.
func (panel *panel) missing(t *testing.T, p *scraper) string {
	t.Helper()
	all := strings.NewReplacer("$__rate_interval", "1m", "$instance", ".*", "$policy", ".*")
	named := make(map[string]bool)
	for _, target := range panel.Targets {
		results := p.query(t, all.Replace(target.Expr))
		if len(results) == 0 && !strings.HasSuffix(target.Expr, " > 0") {
			return fmt.Sprintf("something to show in panel %q of\n%s", panel.Title, target.Expr)
		}
		for _, r := range results {
			name := legend(target.LegendFormat, r.Metric)
			if named[name] || strings.Contains(name, "{{") {
				return fmt.Sprintf("a name of its own in panel %q, but %q, for\n%s", panel.Title, name, target.Expr)
			}
			named[name] = true
			if value := fmt.Sprint(r.Value[1]); value == "NaN" && !strings.Contains(target.Expr, "histogram_quantile") {
				return fmt.Sprintf("a number in panel %q for %s", panel.Title, name)
			}
		}
	}
	return ""
}

// legend returns the name of a series.
func legend(format string, labels map[string]string) string {
	for label, value := range labels {
		format = strings.ReplaceAll(format, "{{"+label+"}}", value)
	}
	return format
}
