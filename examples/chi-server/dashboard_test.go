// Tests of the dashboards without a Prometheus server.

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/internal/longtest"
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

// A panel has the parts of a panel that the tests read.
type panel struct {
	ID                       int
	Type, Title, Description string
	Targets                  []target
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

// readDashboard returns a dashboard.
func readDashboard(t *testing.T, file string) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal([]byte(read(t, file)), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// readDashboards returns the first dashboard with the panels of the second.
func readDashboards(t *testing.T) dashboard {
	t.Helper()
	d := readDashboard(t, "dashboard.json")
	d.Panels = append(d.Panels, readDashboard(t, "dashboard-details.json").Panels...)
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

// TestFirstDashboard: each panel answers the question that is its title. The screen begins with numbers, and the other
// dashboard is one click away.
func TestFirstDashboard(t *testing.T) {
	t.Parallel()
	first, details := readDashboard(t, "dashboard.json"), readDashboard(t, "dashboard-details.json")
	for i, p := range first.Panels {
		if !strings.HasSuffix(p.Title, "?") || p.Type == "row" || (i < 4) != (p.Type == "stat") {
			t.Errorf("panel %d is the %s %q, want four stats and no row, and a question as each title", i, p.Type, p.Title)
		}
	}
	if first.Links[0].URL != "/d/penstock-details" || details.Links[0].URL != "/d/penstock" {
		t.Errorf("got the links %v and %v, want each to the other dashboard first", first.Links, details.Links)
	}
	if !reflect.DeepEqual(first.Templating, details.Templating) || !reflect.DeepEqual(first.Annotations, details.Annotations) {
		t.Error("the dashboards have different variables or annotations")
	}
}

// TestDashboard: operators see the state of the limits without reading a graph.
func TestDashboard(t *testing.T) {
	t.Parallel()
	d := readDashboards(t)
	for _, p := range d.of("stat") {
		if len(p.FieldConfig.Defaults.Thresholds.Steps) < 2 && p.Title != "How many requests arrive?" {
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

// TestLimitAnnotation: a limit that changed has one annotation with the old and the new limit, also while a deploy goes on.
func TestLimitAnnotation(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	annotations := readDashboard(t, "dashboard.json").Annotations.List
	i := slices.IndexFunc(annotations, func(a struct{ Name, Expr string }) bool { return a.Name == "Limit changed" })
	if i < 0 {
		t.Fatal("there is no annotation of changed limits")
	}
	test := new(strings.Builder)
	test.WriteString("tests:\n  - interval: 15s\n    input_series:\n")
	for instance, changes := range map[string]int{"a": 20, "b": 40} { // after so many scrapes
		const series = "      - series: ratelimit_limit_window_seconds{job=\"api\", instance=%q, policy=\"orders\", tier=\"\", limit=%q}\n        values: %s\n"
		fmt.Fprintf(test, series, instance, "60/1m", fmt.Sprintf("60x%d stale", changes))
		fmt.Fprintf(test, series, instance, "30/1m", fmt.Sprintf("_x%d 60x80", changes))
	}
	test.WriteString("    promql_expr_test:\n")
	const changed = `[{labels: '{job="api", policy="orders", limit="30/1m", old="60/1m"}', value: 1}]`
	for at, want := range map[string]string{"4m": "[]", "6m": changed, "9m": "[]", "11m": "[]", "14m": "[]"} {
		fmt.Fprintf(test, "      - expr: %q\n        eval_time: %s\n        exp_samples: %s\n", inQuery.Replace(annotations[i].Expr), at, want)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "annotation_test.yml"), []byte(test.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "", dir, "test", "rules", "annotation_test.yml")
}

// TestDashboardColours: each outcome has a colour of its own, which stays when others are absent.
func TestDashboardColours(t *testing.T) {
	t.Parallel()
	d := readDashboard(t, "dashboard.json")
	i := slices.IndexFunc(d.Panels, func(p panel) bool { return p.Title == "What happens to the requests?" })
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
	d := readDashboards(t)
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
