// A Prometheus for tests.

package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/redistest"
)

// A scraper is a process of Prometheus with our alerts, at short intervals.
type scraper struct {
	url    string
	client *http.Client
	log    *text
}

// startScraper starts a Prometheus that scrapes scenes, each under its name. bounds are pairs of an old and a new text in
// the rules.
func startScraper(t *testing.T, scenes []scene, bounds ...string) *scraper {
	t.Helper()
	return startPrometheus(t, map[string]string{
		"prometheus.yml": configOf(t, scenes, time.Second),
		"rules.yml":      hasty(t, "rules.yml", bounds), "alerts.yml": hasty(t, "alerts.yml", bounds),
	})
}

// startPrometheus starts a Prometheus with these files.
func startPrometheus(t *testing.T, files map[string]string) *scraper {
	t.Helper()
	dir := t.TempDir()
	for file, content := range files {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	addr := freeAddr(t)
	p := &scraper{url: "http://" + addr, client: &http.Client{Transport: &http.Transport{}}, log: new(text)}
	cmd := exec.CommandContext(t.Context(), program(t, "prometheus"), "--config.file=prometheus.yml", "--storage.tsdb.path=data",
		"--web.listen-address="+addr, "--enable-feature=native-histograms")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, p.log, p.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.client.CloseIdleConnections()
		_ = cmd.Wait() // t.Context has ended, and so has the process
	})
	p.until(t, p.unready)
	return p
}

// unready returns why Prometheus does not answer queries yet.
func (p *scraper) unready() string {
	response, err := p.client.Get(p.url + "/-/ready")
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return response.Status
	}
	return ""
}

// configOf returns our configuration, with the scenes in place of the example, and with this interval.
func configOf(t *testing.T, scenes []scene, every time.Duration) string {
	t.Helper()
	const ours = `      - targets: ["127.0.0.1:8080"]`
	before, after, found := strings.Cut(strings.ReplaceAll(read(t, "prometheus.yml"), ": 15s", ": "+every.String()), ours)
	if !found {
		t.Fatalf("no %s in prometheus.yml", ours)
	}
	for _, s := range scenes {
		before += fmt.Sprintf("      - targets: [%q]\n        labels: {instance: %q}\n", strings.TrimPrefix(s.url, "http://"), s.name)
	}
	return before + after
}

// hasty returns our rules, with seconds in place of minutes.
func hasty(t *testing.T, file string, bounds []string) string {
	t.Helper()
	rules := strings.ReplaceAll(read(t, file), "for: 1m", "for: 1s")
	rules = regexp.MustCompile(`for: \d+m`).ReplaceAllString(rules, "for: 3s")
	rules = regexp.MustCompile(`\[\d+m\]`).ReplaceAllString(rules, "[30s]")
	seconds := []string{"offset 5m", "offset 30s", "< 300", "< 30", "/ 300", "/ 30"}
	return strings.NewReplacer(append(seconds, bounds...)...).Replace(rules)
}

// freeAddr returns an address that no process uses at the moment.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// until waits until missing returns "".
func (p *scraper) until(t *testing.T, missing func() string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("Prometheus says:\n%s", p.log)
		}
	}()
	redistest.UntilEmpty(t, "Prometheus has everything", missing)
}

// A result is one series of a query's answer.
type result struct {
	Metric map[string]string
	Value  [2]any // time and value
}

func (p *scraper) query(t *testing.T, query string) []result {
	t.Helper()
	var answer struct{ Data struct{ Result []result } }
	p.get(t, "/api/v1/query?query="+url.QueryEscape(query), &answer)
	return answer.Data.Result
}

// value returns the value of a query's first result, or "".
func (p *scraper) value(t *testing.T, query string) string {
	t.Helper()
	results := p.query(t, query)
	if len(results) == 0 {
		return ""
	}
	return fmt.Sprint(results[0].Value[1])
}

// fired returns the alerts that have fired, each with its policy, instance or code, and the number of evaluations.
func (p *scraper) fired(t *testing.T) map[string]int {
	t.Helper()
	alerts := make(map[string]int)
	for _, r := range p.query(t, `count_over_time(ALERTS{alertstate="firing"}[1h])`) {
		n, err := strconv.Atoi(fmt.Sprint(r.Value[1]))
		if err != nil {
			t.Fatal(err)
		}
		alerts[nameOf(r.Metric)] += n
	}
	return alerts
}

// nameOf returns the name of an alert with what it is about.
func nameOf(labels map[string]string) string {
	return labels["alertname"] + " " + labels["policy"] + labels["instance"] + labels["code"]
}

func (p *scraper) get(t *testing.T, path string, answer any) {
	t.Helper()
	response, err := p.client.Get(p.url + path)
	if err != nil {
		t.Fatalf("%v\n%s", err, p.log)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		t.Fatal(err)
	}
}
