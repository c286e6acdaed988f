package statuspage

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const (
	reloadEvery = 10          // seconds, for ?reload
	renderEvery = time.Second // so that many readers cost no more than one
)

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
// ?format=json. ?reload=10 reloads the HTML page every 10 s. The content is at most
// a second old: all requests within a second get the same.
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
	query := r.URL.Query()
	f, kind := form{reload: query.Has("reload")}, "text/html; charset=utf-8"
	switch format := query.Get("format"); format {
	case "json":
		f, kind = form{json: true}, "application/json"
	case "", "html":
		h.Set("Content-Security-Policy", securityPolicy)
		h.Set("Referrer-Policy", "no-referrer")
	default:
		http.Error(w, fmt.Sprintf("the format is %q: want html or json", format), http.StatusBadRequest)
		return
	}
	body, err := p.render(r.Context(), f)
	if err != nil {
		http.Error(w, "the page cannot be rendered", http.StatusInternalServerError)
		return
	}
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // an error means that the client has hung up
}

// A form is a form of the page's content.
type form struct{ json, reload bool }

// rendered is the content of the page at one instant, in the forms that were asked for.
type rendered struct {
	mu     sync.Mutex
	at     time.Duration // since the page was made
	view   *view         // nil: none yet
	bodies map[form][]byte
}

// render returns the page in a form. For renderEvery, all who read the page get the same content.
func (p *Page) render(ctx context.Context, f form) ([]byte, error) {
	last := &p.rendered
	last.mu.Lock()
	defer last.mu.Unlock()
	if last.view == nil || time.Since(p.made)-last.at >= renderEvery {
		// The content is for others, too: they need it even if this client hangs up.
		v := p.view(context.WithoutCancel(ctx))
		last.at, last.view, last.bodies = time.Since(p.made), v, make(map[form][]byte)
	}
	if body := last.bodies[f]; body != nil {
		return body, nil
	}
	var body bytes.Buffer
	var err error
	if last.view.Reload = f.reload; f.json {
		err = json.NewEncoder(&body).Encode(last.view)
	} else {
		err = page.Execute(&body, last.view)
	}
	if err != nil {
		return nil, err
	}
	last.bodies[f] = body.Bytes()
	return body.Bytes(), nil
}
