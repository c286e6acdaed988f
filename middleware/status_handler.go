package middleware

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"net/http"
	"strconv"
	"sync"
)

const (
	typeHTML = "text/html"
	typeJSON = "application/json"

	reloadEvery = 10 // seconds, for those who ask for it
)

var (
	//go:embed status.html
	statusHTML string
	//go:embed status.css
	statusCSS string

	// statusPage is made when it is first asked for: who has no Status does not
	// pay for it.
	statusPage = sync.OnceValue(func() *template.Template {
		return template.Must(template.New("status").Funcs(statusFuncs).Parse(statusHTML))
	})
	// The page may use its own style, and nothing else.
	statusPolicy = sync.OnceValue(func() string {
		sum := sha256.Sum256([]byte(statusCSS))
		return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
			"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	})
)

// ServeHTTP answers GET and HEAD with the page: as HTML to browsers, and as JSON
// to whom Accept says, to whom it says nothing, or with ?format=json. It is not to
// be stored, loads nothing from elsewhere, and needs no script; ?reload=10 makes
// the browser load it again each 10 s.
//
// The JSON has the members policies, decisions, limiters and findings. Counts of
// policies and decisions are those of the last window_ms, with outcomes by their
// names; quantiles are in nanoseconds. Programs should ignore members that they
// do not know.
func (s *Status) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Vary", "Accept")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		answer(w, &refusal{status: http.StatusMethodNotAllowed})
		return
	}
	query := r.URL.Query()
	form, told := negotiate(query.Get("format"), r.Header.Values("Accept"))
	if told != nil {
		answer(w, told)
		return
	}
	body, failed := new(bytes.Buffer), error(nil)
	if view := s.view(r.Context()); form == typeJSON {
		failed = json.NewEncoder(body).Encode(view)
	} else {
		h.Set("Content-Security-Policy", statusPolicy())
		h.Set("Referrer-Policy", "no-referrer")
		failed = statusPage().Execute(body, statusData{view, query.Has("reload")})
		form += "; charset=utf-8"
	}
	if failed != nil {
		answer(w, &refusal{status: http.StatusInternalServerError})
		return
	}
	h.Set("Content-Type", form)
	h.Set("Content-Length", strconv.Itoa(body.Len()))
	if r.Method == http.MethodGet {
		_, _ = w.Write(body.Bytes()) // the client may be gone; there is nobody to tell
	}
}

// negotiate returns the media type to answer with.
func negotiate(format string, accept []string) (string, *refusal) {
	switch format {
	case "json":
		return typeJSON, nil
	case "html":
		return typeHTML, nil
	case "":
	default:
		return "", &refusal{http.StatusBadRequest, "the format is json or html"}
	}
	asJSON, asHTML := quality(accept, typeJSON), quality(accept, typeHTML)
	switch {
	case asJSON == 0 && asHTML == 0:
		return "", &refusal{http.StatusNotAcceptable, "the page is " + typeHTML + " or " + typeJSON}
	case asHTML > asJSON:
		return typeHTML, nil
	default:
		return typeJSON, nil
	}
}
