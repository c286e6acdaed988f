// The files of the page.

package playground

import (
	"bytes"
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
)

//go:embed assets
var assets embed.FS

// csp lets the page load the files of this server only, and no inline script.
const csp = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// styles are the parts of /demo/style.css: one request is faster than four.
var styles = []string{"page.css", "form.css", "live.css", "limits.css"}

// A file of the page. Browsers keep it, and ask whether it has changed.
type file struct {
	name, tag string // the tag is without quotes
	content   []byte
	zipped    []byte // by gzip
}

// readFiles returns the embedded files by their paths on the server.
func readFiles() (map[string]file, error) {
	entries, err := assets.ReadDir("assets")
	if err != nil {
		return nil, err
	}
	files := make(map[string]file)
	for _, entry := range entries {
		content, err := assets.ReadFile("assets/" + entry.Name())
		if err != nil {
			return nil, err
		}
		if path.Ext(entry.Name()) == ".html" {
			if content, err = served(content); err != nil {
				return nil, err
			}
		}
		switch f := newFile(entry.Name(), content); path.Ext(f.name) {
		case ".css":
			// below
		case ".html":
			files["/"] = f
		default:
			files["/demo/"+f.name] = f
		}
	}
	var style []byte
	for _, name := range styles {
		part, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return nil, err
		}
		style = append(style, part...)
	}
	files["/demo/style.css"] = newFile("style.css", style)
	files["/favicon.ico"] = files["/demo/icon.svg"] // browsers ask for it from /metrics, and must not be charged for that
	return files, nil
}

// served returns the document with the parts that need a server.
func served(text []byte) ([]byte, error) {
	page, err := template.New("page").Parse(string(text))
	if err != nil {
		return nil, err
	}
	var document bytes.Buffer
	err = page.Execute(&document, struct{ Server bool }{true})
	return document.Bytes(), err
}

func newFile(name string, content []byte) file {
	sum := sha256.Sum256(content)
	return file{name, base64.RawURLEncoding.EncodeToString(sum[:12]), content, zip(content)}
}

func zip(content []byte) []byte {
	var zipped bytes.Buffer
	w, _ := gzip.NewWriterLevel(&zipped, gzip.BestCompression) // the level is right, and a Buffer has no errors
	_, _ = w.Write(content)
	_ = w.Close()
	return zipped.Bytes()
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
	h.Set("Content-Type", contentType(f.name))
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

// contentType ignores the machine's table of types for scripts and styles, because
// browsers refuse some types in it.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	default:
		return mime.TypeByExtension(path.Ext(name))
	}
}
