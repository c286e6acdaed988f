package demo

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"mime"
	"net/http"
	"path"
	"time"
)

//go:embed assets
var assets embed.FS

// csp lets the page use what this server has, and nothing that a script or
// another site puts into it.
const csp = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// A file of the page, which browsers keep and ask about.
type file struct {
	name, tag string
	content   []byte
}

// readFiles returns the embedded files by the paths that they are served at.
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
		sum := sha256.Sum256(content)
		at := "/demo/" + entry.Name()
		if entry.Name() == "index.html" {
			at = "/"
		}
		files[at] = file{entry.Name(), `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`, content}
	}
	return files, nil
}

func (f file) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", contentType(f.name))
	h.Set("Content-Security-Policy", csp)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache") // ask each time: a new version may have come
	h.Set("ETag", f.tag)
	http.ServeContent(w, r, f.name, time.Time{}, bytes.NewReader(f.content))
}

// contentType does not leave scripts to the machine's table of types, which may
// say something that browsers refuse.
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
