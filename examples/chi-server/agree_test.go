// The test that the dashboard and the status page agree.

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// TestPageAndDashboardAgree: the status page and the dashboard's first numbers agree to the request, also on requests that meet several
// policies, on banned clients, and on refusals without Redis.
func TestPageAndDashboardAgree(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	redis := redistest.Start(t)
	s := startForOutages(t, "-redis", "redis://"+redis.Addr(), "-admin-token", token)
	s.operate(t, "POST /admin/ban", `{"policy":"*","usr":"merchant-2"}`, http.StatusNoContent)
	redistest.Until(t, "the ban is in force", func() bool {
		return s.send(t, "POST /v1/charges", "", "X-API-Key", "demo-pro").status == http.StatusForbidden
	})
	for range 15 {
		s.send(t, "GET /v1/orders/1", "") // some are denied
		s.send(t, "POST /v1/charges", "", "X-API-Key", "demo-enterprise")
		s.send(t, "POST /v1/charges", "", "X-API-Key", "guess") // 401, which is no denial
		s.send(t, "POST /v1/charges", "", "X-API-Key", "demo-pro")
	}
	redis.Kill()
	for range 5 {
		s.send(t, "POST /v1/login", right)
	}

	var page struct{ Requests, Denied int }
	if err := json.Unmarshal([]byte(s.send(t, "GET /status?format=json", "").body), &page); err != nil {
		t.Fatal(err)
	}
	if headline := fmt.Sprintf("%d of %d requests", page.Denied, page.Requests); page.Denied < 15+5 || !strings.Contains(s.send(t, "GET /status", "").body, headline) {
		t.Errorf("the page does not begin with %q", headline)
	}
	rules, err := filepath.Abs(filepath.Join(observability, "rules.yml"))
	if err != nil {
		t.Fatal(err)
	}
	test := new(strings.Builder)
	fmt.Fprintf(test, "rule_files: [%q]\ntests:\n  - interval: 15s\n    input_series:\n", rules)
	const scraped = "      - series: ratelimit_%s{job=\"api\", instance=\"a\"%s}\n        values: %s+0x20\n"
	fmt.Fprintf(test, scraped, "start_time_seconds", "", "0")
	for _, n := range regexp.MustCompile(`(?m)^ratelimit_decisions_total\{(result="\w+")\} (\d+)$`).FindAllStringSubmatch(s.send(t, "GET /metrics", "").body, -1) {
		fmt.Fprintf(test, scraped, "decisions_total", ", "+n[1], n[2])
	}
	fmt.Fprintf(test, "    promql_expr_test:\n")
	const arrive, denied = "How many requests arrive?", "How many are denied?"
	for title, whole := range map[string]int{arrive: 300, denied: page.Requests} { // of the rate, and of the share
		d := readDashboard(t, "dashboard.json")
		i := slices.IndexFunc(d.Panels, func(p panel) bool { return p.Type == "stat" && p.Title == title })
		want := map[string]int{arrive: page.Requests, denied: page.Denied}[title]
		fmt.Fprintf(test, "      - expr: %q\n        eval_time: 1m\n        exp_samples: [{labels: \"{}\", value: %d}]\n",
			fmt.Sprintf("round(%d * (%s))", whole, inQuery.Replace(d.Panels[i].Targets[0].Expr)), want)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "shares_test.yml"), []byte(test.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "", dir, "test", "rules", "shares_test.yml")
}
