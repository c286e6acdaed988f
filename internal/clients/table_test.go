// The table of RECIPES.md: how clients understand a response, by dialect.

package clients

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

var update = flag.Bool("update", false, "write the table into RECIPES.md")

const documentation = "../../RECIPES.md"

// columns are the dialects of the table.
var columns = []struct {
	title   string
	dialect headers.Dialect
}{
	{"Draft", headers.Draft},
	{"SeparateFields", headers.SeparateFields},
	{"both (default)", headers.Draft | headers.SeparateFields},
	{"XRateLimit", headers.XRateLimit},
}

// Parts of a response.
const (
	whole      = "whole"
	fieldsOnly = "fields" // without Retry-After
	waitOnly   = "wait"   // without the fields of the dialect
	admitted   = "admitted"
	longWait   = "long" // a denial for 400 days
)

// A seen says how a client understood the response of a URL.
type seen struct {
	Name    string
	URL     string
	Waits   []int64        // milliseconds before each retry
	Read    map[string]any // limit, remaining, and reset in seconds; nil stands for NaN
	Failure string
}

// retries is how often each client retries.
const retries = 2

// waits reports whether the client waited for nearly an hour before each retry. Its own timers are much shorter.
func (s seen) waits() bool { return len(s.longWaits()) == retries }

func (s seen) longWaits() (long []int64) {
	for _, ms := range s.Waits {
		if ms >= 3_500_000 {
			long = append(long, ms)
		}
	}
	return long
}

// cell returns the cell of the table for a denial by a limit of 1 per hour.
func (s seen) cell() string {
	limit, has := s.Read["limit"]
	reset, _ := s.Read["reset"].(float64)
	switch {
	case s.waits():
		return "waits"
	case !has:
		return "-"
	case limit == nil:
		return "NaN"
	case limit == 1.0 && s.Read["remaining"] == 0.0 && reset > 3500 && reset <= 3601:
		return "reads"
	default:
		return "wrong"
	}
}

// limited returns a server whose paths are /DIALECT/PART. It denies every request, except those for the part admitted.
func limited(t *testing.T) string {
	mux := http.NewServeMux()
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for _, c := range columns {
		path, o := "/"+c.dialect.String()+"/", &ratelimit.Options{Headers: c.dialect}
		one := keyfunc.Custom("client", func(*http.Request) (string, error) { return "all", nil }) // a Const would have slots
		all := ratelimit.Policy{Name: "p", Key: one}
		limit := func(l algorithms.Limit) http.Handler {
			p := all
			p.Limit = l
			return ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), o, p)).Handler(ok)
		}
		hourly, long := limit(algorithms.TokenBucket(1, time.Hour)), limit(algorithms.TokenBucket(1, 400*24*time.Hour))
		mux.Handle(path+whole, hourly)
		mux.Handle(path+fieldsOnly, without(hourly, func(name string) bool { return name == "Retry-After" }))
		mux.Handle(path+waitOnly, without(hourly, func(name string) bool { return strings.Contains(name, "Ratelimit") }))
		mux.Handle(path+admitted, limit(algorithms.TokenBucket(1000, time.Hour)))
		mux.Handle(path+longWait, long)
	}
	url := serve(t, mux)
	for _, c := range columns {
		for _, part := range []string{whole, longWait} {
			resp, err := http.Get(url + "/" + c.dialect.String() + "/" + part)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close() // not read
		}
	}
	return url
}

// without removes fields from the responses of a handler.
func without(h http.Handler, drop func(name string) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(dropper{w, drop}, r) })
}

type dropper struct {
	http.ResponseWriter
	drop func(name string) bool
}

func (d dropper) WriteHeader(status int) {
	for name := range d.Header() {
		if d.drop(name) {
			d.Header().Del(name)
		}
	}
	d.ResponseWriter.WriteHeader(status)
}

// A program runs clients of one language.
type program func(t *testing.T, urls []string) []seen

// command returns a program in another language.
func command(name string, args ...string) program {
	return func(t *testing.T, urls []string) (all []seen) {
		cmd := exec.Command(name, append(args, urls...)...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v: run make test-clients\n%s", cmd, err, &stderr)
		}
		for line := range bytes.Lines(out) {
			var s seen
			if err := json.Unmarshal(line, &s); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			all = append(all, s)
		}
		return all
	}
}

// goClients runs clients in Go.
func goClients(t *testing.T, urls []string) (all []seen) {
	for _, url := range urls {
		s := seen{Name: "go-retryablehttp", URL: url}
		client := retryablehttp.NewClient()
		client.RetryMax, client.Logger = retries, nil
		client.Backoff = func(least, most time.Duration, attempt int, resp *http.Response) time.Duration {
			s.Waits = append(s.Waits, retryablehttp.DefaultBackoff(least, most, attempt, resp).Milliseconds())
			return 0
		}
		resp, err := client.Get(url)
		if err == nil {
			_ = resp.Body.Close() // not read
		}
		client.HTTPClient.CloseIdleConnections()
		all = append(all, s)
	}
	return all
}

func python() string {
	if name := os.Getenv("PYTHON"); name != "" {
		return name
	}
	return "/usr/bin/python3" // Debian installs the clients for this interpreter
}

// TestTable measures the table, and compares it with the documentation.
func TestTable(t *testing.T) {
	url := limited(t)
	var urls []string
	for _, c := range columns {
		for _, part := range []string{whole, fieldsOnly, waitOnly, admitted} {
			urls = append(urls, url+"/"+c.dialect.String()+"/"+part)
		}
	}
	const format = "| %s | %s | %s | %s | %s | %s |\n"
	table := fmt.Sprintf(format, "Client", "Retry-After", columns[0].title, columns[1].title, columns[2].title, columns[3].title) + "|---|---|---|---|---|---|\n"
	for _, run := range []program{command("node", "clients.mjs"), command(python(), "clients.py"), goClients} {
		var names []string
		results := map[string]seen{} // by name and URL
		for _, s := range run(t, urls) {
			if s.Failure != "" {
				t.Errorf("%s: %s", s.Name, s.Failure)
			}
			if s.URL == urls[0] {
				names = append(names, s.Name)
			}
			results[s.Name+s.URL] = s
		}
		for _, name := range names {
			cells := []string{results[name+urls[2]].cell()}
			for i := range columns {
				of := urls[4*i:]
				cells = append(cells, results[name+of[1]].cell())
				checkWhole(t, name+", "+columns[i].title, cells[0], cells[i+1], results[name+of[0]], results[name+of[2]], results[name+of[3]])
			}
			table += fmt.Sprintf(format, name, cells[0], cells[1], cells[2], cells[3], cells[4])
		}
	}
	compare(t, table)
}

// checkWhole makes sure that the two cells predict how the client understands a whole denial, and that it never waits
// after an admitted response.
func checkWhole(t *testing.T, name, wait, fields string, whole, waitOnly, admitted seen) {
	t.Helper()
	want := fields
	if wait == "waits" {
		want = wait
	}
	if got := whole.cell(); got != want || waitOnly.cell() != wait {
		t.Errorf("%s: got %s for the whole denial and %s for Retry-After alone, want %s and %s", name, got, waitOnly.cell(), want, wait)
	}
	_, reads := admitted.Read["limit"]
	if limit := admitted.Read["limit"]; len(admitted.longWaits()) > 0 || reads != (fields == "reads" || fields == "NaN") || fields == "reads" && limit != 1000.0 {
		t.Errorf("%s: got %+v for an admitted response", name, admitted)
	}
}

// compare compares the table with the table in the documentation. With -update it writes the table there.
func compare(t *testing.T, table string) {
	t.Helper()
	doc, err := os.ReadFile(documentation)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(doc), "| Client | Retry-After |")
	_, after, foundEnd := strings.Cut(rest, "\n\n")
	if !found || !foundEnd {
		t.Fatalf("%s has no table of clients", documentation)
	}
	want := before + table + "\n" + after
	switch {
	case want == string(doc):
	case *update:
		if err := os.WriteFile(documentation, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s differs; go test -update writes it. Measured:\n%s", documentation, table)
	}
}

// TestLongWaits: a client that waits for an hour also waits after a denial for 400 days. JavaScript's timers fire at once
// when they are set to 2^31 ms or more.
func TestLongWaits(t *testing.T) {
	url := limited(t)
	for _, c := range columns {
		path := url + "/" + c.dialect.String() + "/"
		results := map[string]seen{} // by name and URL
		for _, s := range command("node", "clients.mjs")(t, []string{path + whole, path + longWait}) {
			results[s.Name+s.URL] = s
		}
		for _, s := range results {
			if s.URL != path+whole || !s.waits() {
				continue
			}
			waits := results[s.Name+path+longWait].longWaits()
			if len(waits) != retries {
				t.Errorf("%s, %s: got the long waits %d, want %d of them", s.Name, c.title, waits, retries)
			}
			for _, ms := range waits {
				if ms < 13*24*3600*1000 || ms >= 1<<31 {
					t.Errorf("%s, %s: got a wait of %d ms, want about 14 days, below 2^31 ms", s.Name, c.title, ms)
				}
			}
		}
	}
}
