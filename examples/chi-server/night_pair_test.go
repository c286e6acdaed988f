//go:build unix

// A pair of instances for the night shift, and its load.

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/redistest"
)

// A night is two processes of the example that share a Redis, under load, beside a Prometheus.
type night struct {
	*incident // of the first instance; REDIS is the way of the instances to Redis
	proxy     *redistest.Proxy
	instances [2]*instance
	client    *http.Client
	sent      atomic.Int64
	changed   string // the program of a deploy

	began   time.Time
	pressed time.Duration // for which processes of this machine had waited for the CPU then
}

func newNight(t *testing.T, program string) *night {
	t.Helper()
	redis := redistest.Start(t)
	n := &night{began: time.Now(), pressed: pressure(), proxy: redistest.StartProxy(t, redis.Addr()), client: &http.Client{Transport: &http.Transport{}, Timeout: 5 * time.Second}}
	t.Cleanup(n.client.CloseIdleConnections)
	var scenes []scene
	for i := range n.instances {
		n.instances[i] = &instance{addr: freeAddr(t), redis: n.proxy.Addr()}
		n.instances[i].start(t, program)
		scenes = append(scenes, scene{name: string(rune('a' + i)), url: "http://" + n.instances[i].addr})
	}
	in := &incident{server: n.instances[0].server, redis: redis, log: filepath.Join(t.TempDir(), "log")}
	in.p = startPrometheus(t, map[string]string{
		"prometheus.yml": configOf(t, scenes, 15*time.Second/faster),
		"rules.yml":      shortened(read(t, "rules.yml")), "alerts.yml": shortened(read(t, "alerts.yml")),
	})
	in.env = append(os.Environ(), "CONSOLE="+scenes[0].url+"/admin", "TOKEN="+token, "PROMETHEUS="+in.p.url, "REDIS=redis://"+n.proxy.Addr(), "STATUS="+scenes[0].url+"/status")
	n.incident = in
	return n
}

// pressure returns for how long any process of this machine has waited for the CPU; 0 where the kernel does not measure it.
func pressure() time.Duration {
	content, _ := os.ReadFile("/proc/pressure/cpu")
	_, total, _ := strings.Cut(string(content), "total=")
	total, _, _ = strings.Cut(total, "\n")
	us, _ := strconv.Atoi(total)
	return time.Duration(us) * time.Microsecond
}

// waiting returns in which part of the night any process has waited for the CPU.
func (n *night) waiting() float64 {
	return float64(pressure()-n.pressed) / float64(time.Since(n.began))
}

// placeholders returns the words of RUNBOOK with their values for an alert.
func (n *night) placeholders(a alert) *strings.Replacer {
	return strings.NewReplacer("POLICY", a.Labels["policy"], "LOGFILE", n.log)
}

// An instance is a process of the example. A later process has the same address.
type instance struct {
	*server
	addr, redis string
	process     *exec.Cmd
}

func (i *instance) start(t *testing.T, program string) {
	t.Helper()
	i.server = &server{log: new(text), done: make(chan struct{}), client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(i.server.client.CloseIdleConnections)
	i.process = exec.CommandContext(t.Context(), program, "-addr", i.addr, "-redis", "redis://"+i.redis, "-instances", "2", "-admin-token", token, "-trusted-proxies", "127.0.0.0/8")
	i.process.Stderr = i.server.log
	if err := i.process.Start(); err != nil {
		t.Fatal(err)
	}
	process := i.process
	t.Cleanup(func() { _ = process.Wait() }) // t.Context has ended, or deploy has waited
	i.url = i.listening(t)
}

// signal stops the process or lets it continue.
func (i *instance) signal(s syscall.Signal) { _ = i.process.Process.Signal(s) } // the process may have ended with the test

// deploy replaces the process by one of another program.
func (i *instance) deploy(t *testing.T, program string) {
	t.Helper()
	if err := i.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := i.process.Wait(); err != nil {
		t.Errorf("the instance ended with %v:\n%s", err, i.server.log)
	}
	i.start(t, program)
}

// build returns the path of the program, with a change of limits.go.
func build(t *testing.T, before, after string) string {
	t.Helper()
	source, err := os.ReadFile("limits.go")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(source), before) != 1 && before != after {
		t.Fatalf("limits.go does not have %q once", before)
	}
	limits, err := filepath.Abs("limits.go")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program, overlay, changed := filepath.Join(dir, "chi-server"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "limits.go")
	for path, content := range map[string]string{
		changed: strings.Replace(string(source), before, after, 1),
		overlay: fmt.Sprintf(`{"Replace": {%q: %q}}`, limits, changed),
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

// work is a calm service: clients within their limits, and rare logins with the right password.
func (n *night) work(t *testing.T) {
	t.Helper()
	n.flow(t, 20, func() { n.send("GET /v1/orders/1", "", "X-Forwarded-For", oneOf(customers)) })
	n.flow(t, 8, func() { n.send("POST /v1/charges", "", "X-API-Key", "demo-enterprise") })
	n.flow(t, 2, func() { n.send("POST /v1/charges", "", "X-API-Key", "demo-pro") })
	n.flow(t, 1, func() { n.send("GET /v1/search?q=x", "", "X-Forwarded-For", oneOf(customers)) })
	n.flow(t, 2, func() {
		n.send("POST /v1/login", right, "X-Forwarded-For", fmt.Sprintf("203.0.113.%d", rand.IntN(250)))
	})
}

const customers = 40 // by address; each sends an order in two seconds

func oneOf(customers int) string { return fmt.Sprintf("198.51.100.%d", rand.IntN(customers)) }

// greed is a few clients that exceed their limits all the time, and one that guesses passwords.
func (n *night) greed(t *testing.T) {
	t.Helper()
	for i := range 4 {
		addr := fmt.Sprintf("192.0.2.%d", i)
		n.flow(t, float64(2+i), func() { n.send("GET /v1/orders/1", "", "X-Forwarded-For", addr) })
		n.flow(t, 1, func() { n.send("GET /v1/search?deep=1", "", "X-Forwarded-For", addr) })
		n.flow(t, 1, func() { n.send("GET /v1/reports", "", "X-Forwarded-For", addr) })
	}
	n.flow(t, 1, func() { n.send("POST /v1/login", wrong, "X-Forwarded-For", "192.0.2.99") })
}

// flow sends so many requests per second until the test ends, at random instants.
func (n *night) flow(t *testing.T, perSecond float64, send func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Duration(rand.ExpFloat64() / perSecond * float64(time.Second))):
				send()
			}
		}
	}()
	t.Cleanup(func() { stop(); <-done })
}

// repeat begins a fault and ends it in turn, until the test ends.
func (n *night) repeat(t *testing.T, lasts, pause time.Duration, set func(begins bool)) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for begins := true; ctx.Err() == nil; begins = !begins {
			set(begins)
			time.Sleep(map[bool]time.Duration{true: lasts, false: pause}[begins])
		}
		set(false)
	}()
	t.Cleanup(func() { stop(); <-done })
}

// age makes the overrides of a policy so much older.
func (n *night) age(t *testing.T, policy string, by time.Duration) {
	t.Helper()
	key, versions := "penstock:{#overrides}:of:"+policy, "penstock:{#overrides}:versions"
	stored, err := n.redis.Client().HGetAll(t.Context(), key).Result()
	if err != nil || len(stored) == 0 {
		t.Fatalf("got %v and %v, want overrides", stored, err)
	}
	for name, value := range stored {
		var o map[string]any
		if err := json.Unmarshal([]byte(value), &o); err != nil {
			t.Fatal(err)
		}
		o["since"] = time.Now().Add(-by).UTC()
		older, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := n.redis.Client().HSet(t.Context(), key, name, older).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.redis.Client().HSet(t.Context(), versions, policy, "aged").Err(); err != nil {
		t.Fatal(err)
	}
}

// send sends a request to one of the instances, and returns its status; 0 if there is none.
func (n *night) send(line, body string, fields ...string) int {
	method, path, _ := strings.Cut(line, " ")
	request, err := http.NewRequest(method, "http://"+n.instances[rand.IntN(len(n.instances))].addr+path, strings.NewReader(body))
	if err != nil {
		panic(err) // a bad line of a test
	}
	for i := 0; i < len(fields); i += 2 {
		request.Header.Set(fields[i], fields[i+1])
	}
	n.sent.Add(1)
	response, err := n.client.Do(request)
	if err != nil {
		return 0 // a deploy ends an instance
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// An alert is one that Prometheus evaluates.
type alert struct {
	Labels, Annotations map[string]string
	State               string
	ActiveAt            time.Time // since when it is pending
}

// firing returns the alert of a name such as "RateLimitDegraded a" if it fires.
func (p *scraper) firing(t *testing.T, name string) alert {
	t.Helper()
	var answer struct{ Data struct{ Alerts []alert } }
	p.get(t, "/api/v1/alerts", &answer)
	for _, a := range answer.Data.Alerts {
		if a.State == "firing" && nameOf(a.Labels) == name {
			return a
		}
	}
	return alert{}
}
