// The files of the page.

package playground

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"mime"
	"net/http"
	"path"
	"strings"
	"text/template"
	"time"

	"github.com/penstock-go/penstock/middleware"
)

//go:embed assets
var assets embed.FS

// csp lets the page load the files of this server only, and no inline script.
const csp = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// styles are the parts of /demo/style.css: one request is faster than four.
var styles = []string{"page.css", "form.css", "live.css", "limits.css"}

// types replace the types in the machine's table, because browsers refuse some of those.
var types = map[string]string{
	".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
}

// A file of the page. Browsers keep it, and ask whether it has changed.
type file struct {
	name, tag string // the tag is without quotes
	content   []byte
	zipped    []byte // by gzip
}

// readFiles returns the embedded files by their paths on the server. It panics if the program was built with broken ones.
func readFiles() map[string]file {
	files := make(map[string]file)
	for _, entry := range ratelimit.Must(assets.ReadDir("assets")) {
		switch name := entry.Name(); path.Ext(name) {
		case ".css":
			// below
		case ".html":
			files["/"] = newFile(name, served(name))
		default:
			files["/demo/"+name] = newFile(name, asset(name))
		}
	}
	var style []byte
	for _, name := range styles {
		style = append(style, asset(name)...)
	}
	files["/demo/style.css"] = newFile("style.css", style)
	files["/favicon.ico"] = files["/demo/icon.svg"] // browsers ask for it from /metrics, and must not be charged for that
	return files
}

func asset(name string) []byte { return ratelimit.Must(assets.ReadFile("assets/" + name)) }

// served returns the document with the parts that need a server.
func served(name string) []byte {
	page := template.Must(template.New("page").Parse(string(asset(name))))
	var document bytes.Buffer
	err := page.Execute(&document, struct{ Server bool }{true})
	return ratelimit.Must(document.Bytes(), err)
}

func newFile(name string, content []byte) file {
	sum := sha256.Sum256(content)
	var zipped bytes.Buffer
	w, _ := gzip.NewWriterLevel(&zipped, gzip.BestCompression) // the level is right, and a Buffer has no errors
	_, _ = w.Write(content)
	_ = w.Close()
	return file{name, base64.RawURLEncoding.EncodeToString(sum[:12]), content, zipped.Bytes()}
}

// acceptsGzip reports whether a client names gzip, and does not refuse it with q=0.
func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		coding, q, _ := strings.Cut(strings.ReplaceAll(strings.ToLower(part), " ", ""), ";q=")
		if coding == "gzip" {
			return strings.Trim(q, "0.") != "" || q == ""
		}
	}
	return false
}

func (f file) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", cmp.Or(types[path.Ext(f.name)], mime.TypeByExtension(path.Ext(f.name))))
	h.Set("Content-Security-Policy", csp)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache") // browsers ask each time, because a new version may be there
	h.Set("Vary", "Accept-Encoding")
	content, tag := f.content, f.tag
	if acceptsGzip(r) {
		content, tag = f.zipped, tag+"-gzip"
		h.Set("Content-Encoding", "gzip")
		r.Header.Del("Range") // a client cannot decompress a part of a file
	}
	h.Set("ETag", `"`+tag+`"`)
	http.ServeContent(w, r, f.name, time.Time{}, bytes.NewReader(content))
}
