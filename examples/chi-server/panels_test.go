// The test of the panels of the dashboards.

package main

import (
	"fmt"
	"strings"
	"testing"
)

// wantPanels wants series in each panel of the dashboards, each with a name of its own, and no NaN from a division by
// zero. It waits, because on a busy machine a scrape may fail.
func wantPanels(t *testing.T, p *scraper) {
	t.Helper()
	for _, panel := range readDashboards(t).Panels {
		p.until(t, func() (missing string) { return panel.missing(t, p) })
	}
}

// inQuery replaces the variables of the dashboards: all jobs, instances and policies.
var inQuery = strings.NewReplacer("$__rate_interval", "1m", "$job", ".+", "$instance", ".+", "$policy", ".+", "$deadline", "0.05")

// missing returns what the panel lacks.
func (panel *panel) missing(t *testing.T, p *scraper) string {
	t.Helper()
	named, shown := make(map[string]bool), false
	for _, target := range panel.Targets {
		results := p.query(t, inQuery.Replace(target.Expr))
		shown = shown || len(results) > 0
		if len(results) == 0 && panel.Type != "heatmap" && !strings.HasSuffix(target.Expr, " > 0") {
			return fmt.Sprintf("something to show in panel %q of\n%s", panel.Title, target.Expr)
		}
		for _, r := range results {
			name := legend(target.LegendFormat, r.Metric)
			if target.Format == "" && named[name] || strings.Contains(name, "{{") {
				return fmt.Sprintf("a name of its own in panel %q, but %q, for\n%s", panel.Title, name, target.Expr)
			}
			named[name] = true
			if value := fmt.Sprint(r.Value[1]); value == "NaN" && !strings.Contains(target.Expr, "histogram_quantile") {
				return fmt.Sprintf("a number in panel %q for %s", panel.Title, name)
			}
		}
	}
	if !shown && panel.Type != "row" {
		return fmt.Sprintf("something to show in panel %q", panel.Title) // a heatmap shows native or classic histograms
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
