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
	"strings"
	"testing"
	"time"
)

const patience = 60 * time.Second // for what takes scrapes and evaluations

// TestPrometheus: a Prometheus that scrapes a server under load fires one alert, and another not.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	s := start(t)
	p := startScraper(t, s.url)
	p.until(t, "it is scraped", func() bool { return p.value(t, "max(ratelimit_memory_keys)") == "0" })
	if got := p.firing(t); len(got) != 0 {
		t.Errorf("got the alerts %v without load, want none", got)
	}
	denied := 0
	p.until(t, "one alert fires", func() bool {
		for range 20 {
			if s.send(t, "GET /v1/orders/1", "").status == http.StatusTooManyRequests {
				denied++
			}
		}
		return p.firing(t)["RateLimitDenials orders"]
	})
	if denied == 0 {
		t.Error("got an alert, and no denial")
	}
	for alert := range p.firing(t) { // not of too many keys: there is one
		if name, _, _ := strings.Cut(alert, " "); name != "RateLimitDenials" && name != "RateLimitOneOffender" {
			t.Errorf("got %s, want it silent", alert)
		}
	}
	for query, want := range map[string]string{
		`ratelimit_distinct_keys{policy="orders"}`:                                              "1",
		`ratelimit_top_offender_denial_ratio{policy="orders"}`:                                  "1",
		`histogram_quantile(0.5, ratelimit_decision_duration_seconds{source="local"}) > bool 0`: "1", // native
		`sum(ratelimit_requests_total) - sum(ratelimit_requests_total{policy="orders"})`:        "0",
	} {
		if got := p.value(t, query); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
}

// A scraper is a process of Prometheus, with our alerts, for the impatient.
type scraper struct {
	url    string
	client *http.Client
	log    *text
}

func startScraper(t *testing.T, target string) *scraper {
	t.Helper()
	dir := t.TempDir()
	config := strings.NewReplacer("127.0.0.1:8080", strings.TrimPrefix(target, "http://"), ": 15s", ": 200ms").Replace(read(t, "prometheus.yml"))
	rules := regexp.MustCompile(`for: \d+m`).ReplaceAllString(read(t, "alerts.yml"), "for: 1s")
	rules = regexp.MustCompile(`\[\d+m\]`).ReplaceAllString(rules, "[5s]")
	for file, content := range map[string]string{"prometheus.yml": config, "alerts.yml": rules} {
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
	p.until(t, "it is ready", func() bool {
		response, err := p.client.Get(p.url + "/-/ready")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	return p
}

// freeAddr returns an address of which nobody makes use: for the moment.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (p *scraper) until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("not so after %v: %s\n%s", patience, what, p.log)
}

// value returns the value of a query's only result, "" if there is none.
func (p *scraper) value(t *testing.T, query string) string {
	t.Helper()
	var answer struct {
		Data struct{ Result []struct{ Value [2]any } }
	}
	p.get(t, "/api/v1/query?query="+url.QueryEscape(query), &answer)
	if len(answer.Data.Result) == 0 {
		return ""
	}
	return fmt.Sprint(answer.Data.Result[0].Value[1])
}

// firing returns the alerts that fire, each with its policy.
func (p *scraper) firing(t *testing.T) map[string]bool {
	t.Helper()
	var answer struct {
		Data struct {
			Alerts []struct {
				State  string
				Labels map[string]string
			}
		}
	}
	p.get(t, "/api/v1/alerts", &answer)
	alerts := make(map[string]bool)
	for _, a := range answer.Data.Alerts {
		if a.State == "firing" {
			alerts[a.Labels["alertname"]+" "+a.Labels["policy"]] = true
		}
	}
	return alerts
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
