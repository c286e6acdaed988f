// Tests of the dashboard without a Prometheus server.

package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/middleware"
)

// A dashboard has the parts of a dashboard that the tests read.
type dashboard struct {
	Panels     []panel
	Templating struct {
		List []struct{ Name, Query string }
	}
	Annotations struct{ List []struct{ Name, Expr string } }
	Links       []struct{ Title, URL string }
}

// A panel has the parts of a panel that the tests read. A row has panels if it is collapsed.
type panel struct {
	ID                       int
	Type, Title, Description string
	Targets                  []target
	Panels                   []panel
	FieldConfig              struct {
		Defaults struct {
			Thresholds struct{ Steps []struct{ Color string } }
		}
		Overrides []struct {
			Matcher    struct{ Options any }
			Properties []struct {
				ID    string
				Value any
			}
		}
	}
}

// A target is a query of a panel.
type target struct{ Expr, LegendFormat, Format string }

// readDashboard returns our dashboard. Its panels include those of rows.
func readDashboard(t *testing.T) dashboard {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal([]byte(read(t, "dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	for _, row := range d.Panels {
		d.Panels = append(d.Panels, row.Panels...)
	}
	return d
}

// of returns the panels of a type.
func (d *dashboard) of(kind string) (panels []panel) {
	for _, p := range d.Panels {
		if p.Type == kind {
			panels = append(panels, p)
		}
	}
	return panels
}

// asks reports whether a query of the panel has a metric.
func (panel *panel) asks(metric string) bool {
	return slices.ContainsFunc(panel.Targets, func(t target) bool { return strings.Contains(t.Expr, metric) })
}

// TestDashboard: operators see the state of the limits without reading a graph.
func TestDashboard(t *testing.T) {
	t.Parallel()
	d := readDashboard(t)
	if d.Panels[0].Type != "row" || d.Panels[1].Type != "stat" {
		t.Error("the dashboard does not begin with a row of stats")
	}
	for _, p := range d.of("stat") {
		if len(p.FieldConfig.Defaults.Thresholds.Steps) < 2 && p.Title != "Requests" {
			t.Errorf("the stat %q has no threshold", p.Title)
		}
	}
	for kind, metric := range map[string]string{
		"stat":           "job_instance_result:ratelimit_decisions:rate5m",
		"state-timeline": "ratelimit_breaker_open",
		"table":          "ratelimit_limit_window_seconds",
		"heatmap":        "ratelimit_decision_duration_seconds",
	} {
		if !slices.ContainsFunc(d.of(kind), func(p panel) bool { return p.asks(metric) }) {
			t.Errorf("no %s shows %s", kind, metric)
		}
	}
	if !slices.ContainsFunc(d.Panels, func(p panel) bool { return p.asks("vector($deadline)") }) {
		t.Error("no panel shows the deadline")
	}
	var names []string
	for _, v := range d.Templating.List {
		names = append(names, v.Name)
	}
	for _, want := range []string{"datasource", "job", "instance", "policy"} {
		if !slices.Contains(names, want) {
			t.Errorf("got the variables %q, want %s, too", names, want)
		}
	}
	if len(d.Annotations.List) == 0 || len(d.Links) == 0 {
		t.Errorf("got %d annotations and %d links, want some", len(d.Annotations.List), len(d.Links))
	}
	ids := make(map[int]bool)
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("panel %q has the number of another", p.Title)
		}
		ids[p.ID] = true
		if p.Title == "" || p.Type != "row" && p.Description == "" {
			t.Errorf("panel %d %q has no title or no description", p.ID, p.Title)
		}
	}
}

// TestDashboardColours: each outcome has a colour of its own, which stays when others are absent.
func TestDashboardColours(t *testing.T) {
	t.Parallel()
	d := readDashboard(t)
	i := slices.IndexFunc(d.Panels, func(p panel) bool { return p.Title == "Requests by outcome" })
	if i < 0 {
		t.Fatal("no panel shows the outcomes")
	}
	fixed := make(map[any]string)
	for _, o := range d.Panels[i].FieldConfig.Overrides {
		for _, property := range o.Properties {
			colour, ok := property.Value.(map[string]any)
			if !ok || property.ID != "color" || colour["mode"] != "fixed" {
				continue
			}
			for other, taken := range fixed {
				if taken == colour["fixedColor"] {
					t.Errorf("%v and %v have one colour", other, o.Matcher.Options)
				}
			}
			fixed[o.Matcher.Options], _ = colour["fixedColor"].(string)
		}
	}
	for outcome := range ratelimit.OutcomeInvalid + 1 {
		if fixed[outcome.String()] == "" {
			t.Errorf("%v has no fixed colour", outcome)
		}
	}
}

// selector finds the metrics of an expression, and whether their first matcher is of the job.
var selector = regexp.MustCompile(`[\w:]*ratelimit_[\w:]+(\{job=)?`)

// TestJob: all matchers have the job, so that no service hides the trouble of another with the same policies.
func TestJob(t *testing.T) {
	t.Parallel()
	d := readDashboard(t)
	expressions := []string{expressionsOf(read(t, "rules.yml")), expressionsOf(read(t, "alerts.yml"))}
	for _, a := range d.Annotations.List {
		expressions = append(expressions, a.Expr)
	}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			expressions = append(expressions, target.Expr)
		}
	}
	for _, expr := range expressions {
		for _, found := range selector.FindAllStringSubmatch(expr, -1) {
			if found[1] == "" {
				t.Errorf("no job with %s in\n%s", found[0], expr)
			}
		}
	}
	for _, expr := range expressions[:2] {
		for _, by := range byOf.FindAllStringSubmatch(expr, -1) {
			if !slices.Contains(strings.Split(by[1], ", "), "job") {
				t.Errorf("no job in %q", by[0])
			}
		}
	}
}

// expressionsOf returns the expressions of a file of rules.
func expressionsOf(rules string) string {
	return regexp.MustCompile(`(?m)^ *(#|- record:|- alert:|summary:|description:|runbook_url:).*$`).ReplaceAllLiteralString(rules, "")
}
