// The files of the page.

package playground

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

// csp lets the page load the files of this server only, and no inline script.
const csp = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// A file of the page. Browsers keep it, and ask whether it has changed.
type file struct {
	name, tag string
	content   []byte
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
	h.Set("Cache-Control", "no-cache") // browsers ask each time, because a new version may be there
	h.Set("ETag", f.tag)
	http.ServeContent(w, r, f.name, time.Time{}, bytes.NewReader(f.content))
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
