// Tests of the page's files.

package playground

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const maxLines = 300

func TestFiles(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	for path, f := range s.files {
		status, header, body := s.send(t, "GET "+path, "")
		if status != http.StatusOK || body != string(f.content) || header.Get("Content-Security-Policy") != csp {
			t.Errorf("%s: got %d, %d bytes and %v, want it", path, status, len(body), header)
		}
		if strings.Contains(header.Get("Content-Type"), "text/plain") || header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: got %v, want its own type", path, header)
		}
		for _, encoding := range []string{"gzip, br", "br, GZIP;q=0.5", "gzip;q=0", "br", "identity"} {
			zip := strings.Contains(strings.ToLower(encoding), "gzip") && encoding != "gzip;q=0"
			status, header, body := s.send(t, "GET "+path, "", "Accept-Encoding", encoding)
			if status != http.StatusOK || (header.Get("Content-Encoding") == "gzip") != zip || header.Get("Vary") != "Accept-Encoding" {
				t.Errorf("%s as %q: got %d and %v, want gzip: %v", path, encoding, status, header, zip)
			}
			if zip {
				body = unzip(t, body)
			}
			if body != string(f.content) {
				t.Errorf("%s as %q: got %d bytes, want the file", path, encoding, len(body))
			}
			if status, _, _ := s.send(t, "GET "+path, "", "Accept-Encoding", encoding, "If-None-Match", header.Get("ETag")); status != http.StatusNotModified {
				t.Errorf("%s as %q: got %d for an unchanged file, want 304", path, encoding, status)
			}
			if status, head, body := s.send(t, "HEAD "+path, "", "Accept-Encoding", encoding); status != http.StatusOK || body != "" || head.Get("ETag") != header.Get("ETag") {
				t.Errorf("HEAD %s as %q: got %d, %d bytes and %v", path, encoding, status, len(body), head)
			}
		}
		if lines := bytes.Count(f.content, []byte("\n")); lines > maxLines && f.name != "style.css" { // TestStyle bounds its parts
			t.Errorf("%s: got %d lines, want %d or fewer", path, lines, maxLines)
		}
	}
}

// TestStyle: the style sheet has each part once, with at most 300 lines, and every part is one of the assets.
func TestStyle(t *testing.T) {
	t.Parallel()
	files := readFiles()
	entries, err := assets.ReadDir("assets")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".css") {
			continue
		}
		part, err := assets.ReadFile("assets/" + entry.Name())
		if err != nil || bytes.Count(files["/demo/style.css"].content, part) != 1 || bytes.Count(part, []byte("\n")) > maxLines {
			t.Errorf("%s: got %v, want it once in the style sheet, with %d lines or fewer", entry.Name(), err, maxLines)
		}
	}
}

// TestPreloads: the document announces each module that main.js needs, so that a browser fetches them at once.
func TestPreloads(t *testing.T) {
	t.Parallel()
	files := readFiles()
	var want, got []string
	for path := range files {
		if strings.HasSuffix(path, ".js") && path != "/demo/main.js" {
			want = append(want, path)
		}
	}
	for _, found := range regexp.MustCompile(`rel="modulepreload" href="([^"]+)"`).FindAllStringSubmatch(string(files["/"].content), -1) {
		got = append(got, "/"+found[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got %q announced, want %q", got, want)
	}
}

func unzip(t *testing.T, zipped string) string {
	t.Helper()
	r, err := gzip.NewReader(strings.NewReader(zipped))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestFilesFitTheirPolicy: no script or style is inline, and this server has all linked files. Visitors may follow three links elsewhere.
func TestFilesFitTheirPolicy(t *testing.T) {
	t.Parallel()
	files := readFiles()
	if !strings.HasPrefix(csp, "default-src 'none';") || strings.Contains(csp, "unsafe") || strings.Contains(csp, "*") {
		t.Errorf("got the policy %q, want one that forbids everything by default", csp)
	}
	inline := regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|<script(?:[^>]*)>[^<]|innerHTML|javascript:`)
	const module = "github.com/penstock-go/penstock"
	elsewhere := []string{"https://" + module, "https://pkg.go.dev/" + module, "https://" + module + "/blob/main/LICENSE"}
	links := regexp.MustCompile(`(?:href|src)="([^"#]+)"|from "\./([^"]+)"`)
	for path, f := range files {
		if found := inline.Find(f.content); found != nil && path != "/demo/outage.svg" { // a picture has styles of its own: TestOutagePicture
			t.Errorf("%s: got %q, which the policy forbids", path, found)
		}
		for _, link := range links.FindAllStringSubmatch(string(f.content), -1) {
			to := link[1]
			if link[2] != "" {
				to = "demo/" + link[2]
			}
			if strings.HasPrefix(to, "demo/") {
				to = "/" + to
			}
			if path == "/" && strings.Contains(string(f.content), `<a href="`+to+`"`) && slices.Contains(elsewhere, to) {
				continue
			}
			if _, ok := files[to]; !ok && !slices.Contains([]string{"/metrics", "/status", "/v1/orders/1"}, to) {
				t.Errorf("%s: got a link to %q, want a path of the example", path, to)
			}
		}
	}
}

// TestMeasured: the figures under the headline, and the picture, are those of the lab.
func TestMeasured(t *testing.T) {
	t.Parallel()
	lab := func(name string) string {
		text, err := os.ReadFile("../../../internal/lab/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if picture, err := assets.ReadFile("assets/outage.svg"); err != nil || string(picture) != lab("outage/outage.svg") {
		t.Errorf("got another picture, error %v; make outage copies it", err)
	}
	page, err := assets.ReadFile("assets/index.html")
	if err != nil {
		t.Fatal(err)
	}
	shown := func(id string) string {
		return string(regexp.MustCompile(`<span id="` + id + `">([^<]*)`).FindSubmatch(page)[1])
	}
	errors := func(limiter string) string { // in the second column from the right of three
		row := regexp.MustCompile(`(?m)^\| Redis down \| ` + limiter + ` \|.*$`).FindString(lab("outage/RESULTS.md"))
		return strings.TrimSpace(strings.Split(row, "|")[5])
	}
	if own, peer := errors("penstock"), errors("redis_rate"); own != "0" || peer != shown("peer-errors") {
		t.Errorf("got %s and %s errors in RESULTS.md, want 0 and the %s of the page", own, peer, shown("peer-errors"))
	}
	if unfair := shown("unfair"); !strings.Contains(lab("fair/RESULTS.md"), unfair+" %") {
		t.Errorf("fair/RESULTS.md has no %s %%", unfair)
	}
}
