// Clients that wait, against the example: each comes back no earlier than Retry-After says, and then succeeds.

package clients

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/penstock-go/penstock/middleware/client"
)

// early is how much too early a timer may fire: timers of Node have whole milliseconds.
const early = 2 * time.Millisecond

// TestComeback: the clients' own timers are shorter than Retry-After, so only Retry-After explains a long wait.
func TestComeback(t *testing.T) {
	w := &watcher{example: startExample(t), seen: map[string][]visit{}}
	base := serve(t, w)
	var wg sync.WaitGroup
	wg.Go(func() {
		out, err := exec.Command("node", "comeback.mjs", base).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("node: %v: run make test-clients\n%s", err, out)
		}
	})
	for name, send := range map[string]func(string) (*http.Response, error){
		"go-retryablehttp": func(url string) (*http.Response, error) {
			c := retryablehttp.NewClient()
			c.RetryWaitMin, c.RetryWaitMax, c.Logger = 10*time.Millisecond, 10*time.Millisecond, nil
			defer c.HTTPClient.CloseIdleConnections()
			return c.Get(url)
		},
		"penstock":       ours(t, nil),
		"penstock, pace": ours(t, &client.Options{Pace: true}),
	} {
		wg.Go(func() {
			resp, err := send(base + "/" + url.PathEscape(name) + "/v1/orders/1")
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Errorf("%s: got %v, %v", name, resp, err)
				return
			}
			_ = resp.Body.Close() // not read
		})
	}
	wg.Wait()
	for _, name := range []string{"got", "ky", "axios-retry", "p-retry", "go-retryablehttp", "penstock", "penstock, pace"} {
		checkComeback(t, name, w.seen[name])
	}
}

// ours returns a function that sends a request through penstock's Transport.
func ours(t *testing.T, o *client.Options) func(string) (*http.Response, error) {
	transport, err := client.NewTransport(&http.Transport{}, o)
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Transport: transport}
	t.Cleanup(c.CloseIdleConnections)
	return c.Get
}

// checkComeback makes sure that a client was denied, waited for Retry-After, and succeeded.
func checkComeback(t *testing.T, name string, visits []visit) {
	t.Helper()
	last := len(visits) - 1
	if last < 1 || visits[0].status != http.StatusTooManyRequests || visits[last].status != http.StatusOK {
		t.Errorf("%s: got %+v, want a denial, then success", name, visits)
		return
	}
	for i := range last {
		told, waited := visits[i].retryAfter, visits[i+1].arrived.Sub(visits[i].answered)
		if told < time.Second || waited < told-early {
			t.Errorf("%s: Retry-After was %v, came back after %v", name, told, waited)
		}
		t.Logf("%s: Retry-After was %v, came back after %v", name, told, waited)
	}
}

// A visit is a request of a client, and its answer.
type visit struct {
	arrived, answered time.Time
	status            int
	retryAfter        time.Duration
}

// A watcher is a proxy in front of the example. The first part of a path names the client. Each client has an address of
// its own, whose limit is used up before its first request.
type watcher struct {
	example *url.URL

	mu   sync.Mutex
	seen map[string][]visit // by client
}

func (w *watcher) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	v := visit{arrived: time.Now()}
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	address := w.addressOf(name)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(w.example)
			p.Out.URL.Path = strings.TrimPrefix(r.URL.Path, "/"+name)
			p.Out.URL.RawPath = ""
			p.Out.Header.Set("X-Forwarded-For", address)
		},
		ModifyResponse: func(resp *http.Response) error {
			seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // an admitted request has none: 0
			v.status, v.retryAfter, v.answered = resp.StatusCode, time.Duration(seconds)*time.Second, time.Now()
			w.mu.Lock()
			defer w.mu.Unlock()
			w.seen[name] = append(w.seen[name], v)
			return nil
		},
	}
	proxy.ServeHTTP(rw, r)
}

// addressOf returns the address of a client. It uses up the limit of a new client.
func (w *watcher) addressOf(name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	sum := 0
	for _, c := range name {
		sum = (sum*31 + int(c)) % 60_000
	}
	address := "203.0." + strconv.Itoa(sum/250) + "." + strconv.Itoa(sum%250)
	if len(w.seen[name]) > 0 {
		return address
	}
	for range 50 {
		req, err := http.NewRequest(http.MethodGet, w.example.JoinPath("/v1/orders/1").String(), nil)
		if err != nil {
			break
		}
		req.Header.Set("X-Forwarded-For", address)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			break
		}
		_ = resp.Body.Close() // not read
		if resp.StatusCode == http.StatusTooManyRequests {
			break
		}
	}
	return address
}

var listening = regexp.MustCompile(`msg=listening url=(\S+)`)

// startExample builds and starts the example, which trusts the X-Forwarded-For of its clients.
func startExample(t *testing.T) *url.URL {
	t.Helper()
	program := filepath.Join(t.TempDir(), "chi-server")
	build := exec.Command("go", "build", "-o", program, "./examples/chi-server")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, stop := context.WithCancel(context.Background())
	server := exec.CommandContext(ctx, program, "-addr", "127.0.0.1:0", "-trusted-proxies", "127.0.0.0/8")
	log, err := server.StderrPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		stop()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = server.Wait() // its error says that stop has killed it
	})
	for lines := bufio.NewScanner(log); lines.Scan(); {
		if match := listening.FindStringSubmatch(lines.Text()); match != nil {
			go func() { _, _ = io.Copy(io.Discard, log) }() // the server must not block
			address, err := url.Parse(match[1])
			if err != nil {
				t.Fatal(err)
			}
			return address
		}
	}
	t.Fatal("the example did not say where it listens")
	return nil
}
