package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// wantPanels wants that each panel of the dashboard shows something of the scenes, each series under a name of its own,
// and that no part of nothing is a gap. It waits: on a busy machine a scrape may fail, and what it would have had is gone
// until the next.
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

// A panel is what is tested of one.
type panel struct {
	Title   string
	Targets []struct{ Expr, LegendFormat string }
}

// missing returns what is wrong with the panel.
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

// legend is a series' name.
func legend(format string, labels map[string]string) string {
	for label, value := range labels {
		format = strings.ReplaceAll(format, "{{"+label+"}}", value)
	}
	return format
}
