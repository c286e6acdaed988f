package statuspage

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
)

const reloadEvery = 10 // seconds, for ?reload

var (
	//go:embed status.html
	markup string
	//go:embed status.css
	styles string

	page = template.Must(template.New("status").Funcs(functions).Parse(markup))

	// The policy allows the page its own style and nothing more.
	securityPolicy = func() string {
		sum := sha256.Sum256([]byte(styles))
		return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
			"'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	}()
)

// ServeHTTP answers GET and HEAD with the page. It is HTML, or JSON with
// ?format=json. ?reload=10 reloads the HTML page every 10 s.
//
// The JSON's counts of policies and decisions cover the last window_ms. Quantiles
// are in nanoseconds. Programs must ignore members that they do not know.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, fmt.Sprintf("the method is %q: want GET or HEAD", r.Method), http.StatusMethodNotAllowed)
		return
	}
	var (
		query = r.URL.Query()
		body  = new(bytes.Buffer)
		kind  string
		err   error
	)
	switch format := query.Get("format"); format {
	case "json":
		kind = "application/json"
		err = json.NewEncoder(body).Encode(p.view(r.Context()))
	case "", "html":
		kind = "text/html; charset=utf-8"
		h.Set("Content-Security-Policy", securityPolicy)
		h.Set("Referrer-Policy", "no-referrer")
		v := p.view(r.Context())
		v.Reload = query.Has("reload")
		err = page.Execute(body, v)
	default:
		http.Error(w, fmt.Sprintf("the format is %q: want html or json", format), http.StatusBadRequest)
		return
	}
	if err != nil {
		http.Error(w, "the page cannot be rendered", http.StatusInternalServerError)
		return
	}
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(body.Len()))
	_, _ = w.Write(body.Bytes()) // an error means that the client has hung up
}
