package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// wantPanels wants that each panel of the dashboard shows something of the scenes, each series under a name of its own,
// and that no part of nothing is a gap.
func wantPanels(t *testing.T, p *scraper) {
	t.Helper()
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	all := strings.NewReplacer("$__rate_interval", "30s", "$instance", ".*", "$policy", ".*")
	for _, panel := range d.Panels {
		names := make(map[string]string)
		for _, target := range panel.Targets {
			results := p.query(t, all.Replace(target.Expr))
			if len(results) == 0 && !strings.HasSuffix(target.Expr, " > 0") {
				t.Errorf("panel %q has nothing to show of\n%s", panel.Title, target.Expr)
			}
			for _, r := range results {
				name := legend(target.LegendFormat, r.Metric)
				if other, taken := names[name]; taken || strings.Contains(name, "{{") {
					t.Errorf("panel %q calls two series, or none, %q:\n%s\n%s", panel.Title, name, other, target.Expr)
				}
				names[name] = target.Expr
				if value := fmt.Sprint(r.Value[1]); value == "NaN" && !strings.Contains(target.Expr, "histogram_quantile") {
					t.Errorf("panel %q: got no number for %s", panel.Title, name)
				}
			}
		}
	}
}

// legend is a series' name.
func legend(format string, labels map[string]string) string {
	for label, value := range labels {
		format = strings.ReplaceAll(format, "{{"+label+"}}", value)
	}
	return format
}
