// Tests of the page without a server.

package e2e

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io/fs"
	"iter"
	"mime"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"

	"github.com/penstock-go/penstock/examples/chi-server/playground/instruments"
)

// buildSite builds the site once, and returns its folder.
var buildSite = sync.OnceValues(func() (string, error) {
	folder := filepath.Join(scratch, "site")
	if out, err := exec.Command("go", "run", "-C", "../../site", ".", "-o", folder).CombinedOutput(); err != nil {
		return "", fmt.Errorf("the site: %w\n%s", err, out)
	}
	return folder, nil
})

func site(t *testing.T) (folder string) {
	t.Helper()
	folder, err := buildSite()
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// files is the site as files, which a browser opens without a server.
func files(t *testing.T) *server {
	t.Helper()
	return &server{url: "file://" + site(t), home: "/index.html"}
}

// siteFiles yields the names of all files.
func siteFiles(t *testing.T, folder string) iter.Seq[string] {
	return func(yield func(string) bool) {
		err := fs.WalkDir(os.DirFS(folder), ".", func(name string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && !yield(name) {
				return fs.SkipAll
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func zip(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var zipped bytes.Buffer
	w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return zipped.Bytes()
}

// host serves the site below a path, compressed.
func host(t *testing.T) *server {
	t.Helper()
	folder := site(t)
	zipped := make(map[string][]byte)
	for name := range siteFiles(t, folder) {
		zipped["/some/where/"+name] = zip(t, filepath.Join(folder, name))
	}
	zipped["/some/where/"] = zipped["/some/where/index.html"]
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, ok := zipped[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", cmp.Or(mime.TypeByExtension(path.Ext(r.URL.Path)), "text/html"))
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(content)
	}))
	t.Cleanup(h.Close)
	return &server{url: h.URL + "/some/where", home: "/"}
}

// pages are the other documents of the site.
var pages = []string{"peers", "outage", "accuracy", "fairness"}

// TestSiteOnEveryScreen: without a server, each part of the page works, fits, and is accessible, in both colour schemes.
func TestSiteOnEveryScreen(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"light", "dark"} {
		for _, screen := range screens {
			t.Run(fmt.Sprint(scheme, screen[0]), func(t *testing.T) {
				t.Parallel()
				s := files(t)
				everyPart(t, s, scheme, screen)
				for _, name := range pages {
					p := open(t, s, "/"+name+".html", screen[0], media(scheme, "reduce"), window(screen[0], screen[1]))
					readable(t, p, scheme, screen[0])
					p.screen(t, fmt.Sprintf("%s-%s-%d", name, scheme, screen[0]))
				}
			})
		}
	}
}

// TestSiteBelowAPath: the site needs no place at the top of a host.
func TestSiteBelowAPath(t *testing.T) {
	t.Parallel()
	s := host(t)
	everyPart(t, s, "light", screens[0])
	for _, name := range pages {
		p := open(t, s, "/"+name+".html", phone)
		readable(t, p, "light", phone)
	}
}

// TestSiteWeight: all files weigh at most 1.3 MB, compressed.
func TestSiteWeight(t *testing.T) {
	t.Parallel()
	folder, sum := site(t), 0
	for name := range siteFiles(t, folder) {
		sum += len(zip(t, filepath.Join(folder, name)))
	}
	t.Logf("%d bytes", sum)
	if sum > 1_300_000 || sum < 100_000 {
		t.Errorf("got %d bytes, want 1 300 000 or fewer", sum)
	}
}

// TestSiteDecides: the WebAssembly answers as the same code does outside of a browser.
func TestSiteDecides(t *testing.T) {
	t.Parallel()
	p := openFirst(t, files(t), desktop)
	tab := instruments.NewTab(time.Now)
	const all = "limit=token-bucket+10/1m+burst+3&limit=leaky-bucket+10/1m+burst+5&limit=sliding-window-counter+10/1m&limit=sliding-window-log+10/1m" +
		"&limit=fixed-window+10/1m&limit=calendar-window+10/day&limit=concurrent+3/30s"
	for _, at := range []string{"0,0,0,0,1500,1500,59999,60000,60001", "50000,51000,52000,53000,54000,55000,56000,57000,58000,59000,60000,61000,62000,63000,64000,65000,66000"} {
		target := "/demo/compare?at=" + at + "&" + all
		want := tab.Answer("GET", target, "")
		if got := eval[string](t, p, fmt.Sprintf(`penstock("GET", %q, "").body`, target)); got != want.Body || want.Status != 200 {
			t.Errorf("%s: got %s, want %d and %s", at, got, want.Status, want.Body)
		}
	}
}

// emulate is [network.EmulateNetworkConditionsByRule].
var emulate = cdp.Command[link, network.EmulateNetworkConditionsByRuleResult]{Method: network.CommandEmulateNetworkConditionsByRule}

// A link is the parameters of emulate. Chromium 148 insists on Offline, and later ones ignore it.
type link struct {
	MatchedNetworkConditions []*network.Conditions `json:"matchedNetworkConditions"`
	Offline                  bool                  `json:"offline"`
}

// TestSitePaintsFirst: on a slow link, the page is painted before the WebAssembly has arrived. The test judges the order,
// because the times depend on the machine.
func TestSitePaintsFirst(t *testing.T) {
	t.Parallel()
	s := host(t)
	slow := command(emulate, link{MatchedNetworkConditions: []*network.Conditions{{Latency: 400, DownloadThroughput: 50_000, UploadThroughput: 50_000}}})
	p := open(t, s, s.home, phone, slow)
	p.until(t, `performance.getEntriesByName("limits").length`)
	times := eval[[]float64](t, p, `[performance.getEntriesByName("first-contentful-paint")[0].startTime,
		performance.getEntriesByType("resource").find((r) => r.name.endsWith("/limits.js")).startTime,
		performance.getEntriesByType("resource").find((r) => r.name.endsWith("/limits.js")).responseEnd]`)
	t.Logf("painted at %.0f ms; the WebAssembly was asked for at %.0f ms, and arrived at %.0f ms", times[0], times[1], times[2])
	if times[0] > times[2] {
		t.Errorf("got the first paint at %.0f ms, after the WebAssembly", times[0])
	}
}
