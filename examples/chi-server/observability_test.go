// Tests of the metrics, alerts and dashboard without a Prometheus server.

package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/redistest"
)

const observability = "observability"

// program returns the path of one of Prometheus's programs. Without it, the test fails.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%v: run \"make test-long\", or install the package prometheus", err)
	}
	return path
}

// promtool runs promtool, and wants no failure.
func promtool(t *testing.T, stdin, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t, "promtool"), args...)
	cmd.Stdin, cmd.Dir = strings.NewReader(stdin), dir
	if said, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(said), "FAILED") {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, said)
	}
}

// metricsPage returns the metrics of a server with Redis after requests for most policies.
func metricsPage(t *testing.T) string {
	t.Helper()
	s := start(t, "-redis", "redis://"+redistest.Start(t).Addr())
	for _, line := range []string{"GET /v1/orders/1", "GET /v1/search", "GET /v1/reports", "POST /v1/login", "POST /v1/sms", "GET /nothing"} {
		s.send(t, line, "")
	}
	s.send(t, "POST /v1/charges", "", "X-API-Key", "demo-pro")
	s.send(t, "POST /v1/charges", "")
	page := s.send(t, "GET /metrics", "")
	if page.status != http.StatusOK {
		t.Fatalf("got %d, want the metrics", page.status)
	}
	return page.body
}

// TestMetricsPage: the metrics follow the conventions, count the requests, and contain no data of clients.
func TestMetricsPage(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	page := metricsPage(t)
	promtool(t, page, ".", "check", "metrics")
	for _, want := range []string{
		`ratelimit_requests_total{outcome="allowed",policy="orders",tier=""} 1`,
		`ratelimit_requests_total{outcome="allowed",policy="charges-merchant",tier="pro"} 1`,
		`ratelimit_requests_total{outcome="allowed",policy="charges-capacity",tier=""} 1`,
		`ratelimit_requests_total{outcome="key_error",policy="charges-merchant",tier=""} 1`,
		`ratelimit_breaker_open{limiter="redis"} 0`,
		`ratelimit_instances{limiter="redis"} 1`,
	} {
		if !strings.Contains(page, "\n"+want+"\n") {
			t.Errorf("got no %s in\n%s", want, page)
		}
	}
	for _, bad := range []string{"127.0.0.1", "demo-pro", "nothing"} {
		if strings.Contains(page, bad) {
			t.Errorf("got %q in the metrics", bad)
		}
	}
}

func TestAlerts(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	promtool(t, "", observability, "check", "rules", "rules.yml", "alerts.yml")
	promtool(t, "", observability, "check", "config", "prometheus.yml")
	promtool(t, "", observability, "test", "rules", "alerts_test.yml")

	tests := read(t, "alerts_test.yml")
	for _, alert := range regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(read(t, "alerts.yml"), -1) {
		for what, pattern := range map[string]string{"fires": `exp_alerts:\n`, "is silent": `exp_alerts: \[\]\n`} {
			if !regexp.MustCompile(`alertname: ` + alert[1] + `\n\s+` + pattern).MatchString(tests) {
				t.Errorf("no test of when %s %s", alert[1], what)
			}
		}
	}
}

// TestRunbook: the link of each alert leads to a heading of the runbook, and each alert has a severity and a summary.
func TestRunbook(t *testing.T) {
	t.Parallel()
	runbook, err := os.ReadFile(filepath.Join("..", "..", "RUNBOOK.md"))
	if err != nil {
		t.Fatal(err)
	}
	anchors := make(map[string]bool)
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(runbook), -1) {
		anchors[strings.ReplaceAll(strings.ToLower(heading[1]), " ", "-")] = true
	}
	for _, alert := range strings.Split(read(t, "alerts.yml"), "- alert: ")[1:] {
		name, _, _ := strings.Cut(alert, "\n")
		for _, field := range []string{"severity", "summary", "description"} {
			if !strings.Contains(alert, " "+field+": ") {
				t.Errorf("%s has no %s", name, field)
			}
		}
		link := regexp.MustCompile(`runbook_url: "https://github\.com/penstock-go/penstock/blob/main/RUNBOOK\.md#(.*)"`).FindStringSubmatch(alert)
		if link == nil || !anchors[link[1]] {
			t.Errorf("%s: got the link %q, want one to a heading of the runbook", name, link)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(observability, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestQueries: the metrics and labels in alerts and in the dashboard exist, and a query shows every metric.
func TestQueries(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	exported := exportedBy(metricsPage(t))
	exported.record(t)
	exported["ratelimit_candidate_divergences_total"] = []string{"policy", "live", "candidate"} // the example has no candidate
	d := readDashboards(t)
	queries := []string{expressionsOf(read(t, "rules.yml")), read(t, "alerts.yml")}
	for _, v := range d.Templating.List {
		queries = append(queries, v.Query)
	}
	for _, a := range d.Annotations.List {
		queries = append(queries, a.Expr)
	}
	rules := new(strings.Builder)
	rules.WriteString("groups: [{name: dashboard, rules: [\n")
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			queries = append(queries, target.Expr)
			fmt.Fprintf(rules, "{record: r%d, expr: %q},\n", len(queries), inQuery.Replace(target.Expr))
		}
	}
	rules.WriteString("]}]\n")
	file := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(file, []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "", ".", "check", "rules", "--lint=none", file)

	asked := make(map[string]bool)
	for _, query := range queries {
		for _, problem := range exported.unknown(query, asked) {
			t.Errorf("%s, in\n%s", problem, query)
		}
	}
	for name := range exported {
		if !asked[name] {
			t.Errorf("no query shows %s", name)
		}
	}
}

// TestQueriesFinds: the test of queries finds each kind of misconfiguration.
func TestQueriesFinds(t *testing.T) {
	exported := series{"ratelimit_requests_total": {"policy", "outcome"}, "ratelimit_seconds": {"source"}}
	for query, want := range map[string]int{
		`sum by (policy) (rate(ratelimit_requests_total{outcome="denied", instance="a"}[5m]))`: 0,
		`histogram_quantile(0.9, sum by (le, source) (rate(ratelimit_seconds_bucket[5m])))`:    0,
		`ratelimit_request_total`:                      1,
		`sum by (policies) (ratelimit_requests_total)`: 1,
		`ratelimit_requests_total{outcomes=~"denied"}`: 1,
		`ratelimit_seconds{policy="p"}`:                1,
	} {
		if got := exported.unknown(query, make(map[string]bool)); len(got) != want {
			t.Errorf("%s: got %q, want %d problems", query, got, want)
		}
	}
}

// series are the names of metrics with the names of their labels.
type series map[string][]string

// exportedBy reads a page of metrics, without those of Go and of the process.
func exportedBy(page string) series {
	exported := make(series)
	for _, kind := range regexp.MustCompile(`(?m)^# TYPE (ratelimit_\w+) `).FindAllStringSubmatch(page, -1) {
		exported[kind[1]] = nil
		line := regexp.MustCompile(`(?m)^` + kind[1] + `(?:_count)?(?:\{(.*)\})? `).FindStringSubmatch(page)
		for _, label := range labelOf.FindAllStringSubmatch(line[1], -1) {
			exported[kind[1]] = append(exported[kind[1]], label[1])
		}
	}
	return exported
}

// record adds the series of our recording rules. Their names begin with their labels.
func (s series) record(t *testing.T) {
	t.Helper()
	for _, name := range regexp.MustCompile(`- record: (.*)`).FindAllStringSubmatch(read(t, "rules.yml"), -1) {
		labels, _, _ := strings.Cut(name[1], ":")
		s[name[1]] = strings.Split(labels, "_")
	}
}

var (
	metricOf  = regexp.MustCompile(`[\w:]*ratelimit_[\w:]+`)
	labelOf   = regexp.MustCompile(`(\w+)(?:=~|!~|!=|=)"`)
	byOf      = regexp.MustCompile(`\b(?:by|on) \(([^)]*)\)`)
	madeLabel = regexp.MustCompile(`"(\w+)", "\$1"`) // of label_replace
	suffix    = regexp.MustCompile(`_(bucket|count|sum)$`)

	ofScrapes = []string{"instance", "job", "le", "alertname", "alertstate"}
)

// unknown returns the metrics and labels of a query that do not exist. It adds the metrics of the query to asked.
func (s series) unknown(query string, asked map[string]bool) (problems []string) {
	known := slices.Clone(ofScrapes)
	for _, made := range madeLabel.FindAllStringSubmatch(query, -1) {
		known = append(known, made[1])
	}
	for _, name := range metricOf.FindAllString(query, -1) {
		if _, ok := s[name]; !ok {
			name = suffix.ReplaceAllString(name, "")
		}
		labels, ok := s[name]
		if !ok {
			problems = append(problems, "there is no metric "+name)
			return problems
		}
		asked[name] = true
		known = append(known, labels...)
	}
	var labels []string
	for _, l := range labelOf.FindAllStringSubmatch(query, -1) {
		labels = append(labels, l[1])
	}
	for _, by := range byOf.FindAllStringSubmatch(query, -1) {
		labels = append(labels, strings.Split(by[1], ", ")...)
	}
	for _, label := range labels {
		if !slices.Contains(known, label) {
			problems = append(problems, "there is no label "+label)
		}
	}
	return problems
}
