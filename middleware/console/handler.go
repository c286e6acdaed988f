// The console over HTTP: authorization, routing, requests and answers.

package console

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/logwriter"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// maxBody bounds the body of a request, in bytes. Requests need far less.
const maxBody = 8 << 10

// Handler returns the console as JSON over HTTP. authorize returns the operator's name, for the log of changes
// and for the overrides that the operator sets (at most 128 bytes), or an error, which is logged and answered 403. It must not be nil.
//
//	Method  Path                      Action
//	GET     /who?usr=42               says why a client is denied; also ip=, key=, and several of them
//	GET     /denied?since=1h          lists denied clients that were not denied before
//	GET     /near                     lists clients whose admitted requests leave less than a fifth of a limit
//	GET     /policies                 lists the policies, their keys, and their limits
//	POST    /reset                    {"policy":"p","key":"usr=42"}
//	POST    /grant                    {"policy":"p","key":"usr=42","units":10}
//	POST    /ban                      {"policy":"p","key":"usr=42"}; optional: "for":"1h", or "until":"2026-11-21T12:00:00Z"
//	POST    /unban                    {"policy":"p","key":"usr=42"}
//	GET     /overrides?since=         lists the overrides of all policies, when they were set, and all bans by Policy.Ban
//	DELETE  /overrides?since=         clears the overrides set since an instant, and lists them
//	GET     /overrides/{policy}       lists the overrides of a policy; ?key= selects one
//	PUT     /overrides/{policy}?key=  sets one, e.g. {"limit":"500/1m","mode":"shadow","for":"1h"}; also "until", as for bans
//	DELETE  /overrides/{policy}?key=  clears one
//
// usr=42 (the account) or ip=192.0.2.1 may replace key= in queries, and "usr" or "ip" may replace "key" in bodies.
// Bans and overrides take the first part of a client's keys, such as usr=42; in /overrides, the key * is everyone.
// The policy * is all policies. A key that the policy never makes can be read and cleared there. since= is an instant
// such as 2026-11-21T12:00:00Z, or a time ago such as 1h.
//
// reset and grant are answered with the units that came back, unban with the bans that it lifted, and 404 if there was
// nothing to give back or to lift, or 409 if a ban still holds. Another change is answered 204. An unknown field or
// key is answered 400 with the name of the field, and 503 means that Redis does not answer. An override keeps the operator's
// name as "by".
// The handler requires the same origin and application/json, so that other sites cannot use an operator's browser.
//
// With [Console.Instances], /who, /denied, /near and the bans of /overrides are of all instances together, and "failed" names the instances that did not
// answer. The parameter here=1 asks this instance alone.
//
// Mount it under [http.StripPrefix], where clients do not reach it. It logs to slog.Default().
func (c *Console) Handler(authorize func(*http.Request) (who string, err error)) (http.Handler, error) {
	if authorize == nil {
		return nil, errors.New("ratelimit: authorize is nil: want a function that admits operators")
	}
	instances, err := parseInstances(c.Instances)
	if err != nil {
		return nil, err
	}
	h := &handler{console: c, name: rand.Text(), authorize: authorize, logger: slog.Default(), instances: instances, lookUp: net.DefaultResolver.LookupNetIP, origin: http.NewCrossOriginProtection()}
	h.intruders.Writer = logwriter.New(h.logger)
	for pattern, act := range map[string]action{
		"GET /policies":              h.policies,
		"GET /who":                   h.who,
		"GET /denied":                h.denied,
		"GET /near":                  h.near,
		"GET /overrides":             h.allOverrides,
		"DELETE /overrides":          h.clearAll,
		"POST /reset":                h.reset,
		"POST /grant":                h.grant,
		"POST /ban":                  h.ban,
		"POST /unban":                h.unban,
		"GET /overrides/{policy}":    h.overrides,
		"PUT /overrides/{policy}":    h.set,
		"DELETE /overrides/{policy}": h.clear,
	} {
		h.mux.HandleFunc(pattern, h.serve(act))
	}
	return h, nil
}

type handler struct {
	console   *Console
	authorize func(*http.Request) (who string, err error)
	logger    *slog.Logger
	name      string // of this instance; see nameField
	instances []*url.URL
	lookUp    func(ctx context.Context, network, host string) ([]netip.Addr, error)
	intruders logwriter.Seldom // a guesser sends many requests
	origin    *http.CrossOriginProtection
	mux       http.ServeMux
}

// An action returns the answer to a request, to be encoded as JSON, or nil for none.
type action func(r *http.Request) (any, error)

// A refusal is an error whose text the operator reads.
type refusal struct {
	status int
	detail string
}

func (e *refusal) Error() string { return e.detail }

// ServeHTTP authorizes before it routes, so that an intruder does not learn which
// paths exist.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	who, err := h.authorize(r)
	if err == nil {
		err = h.origin.Check(r)
	}
	if err != nil {
		h.intruders.Warn("console: unauthorized request", "", err)
		answer(w, &refusal{status: http.StatusForbidden})
		return
	}
	if path.Clean(r.URL.Path) != r.URL.Path {
		// The mux would redirect, and StripPrefix has removed a part of the path.
		answer(w, &refusal{status: http.StatusNotFound})
		return
	}
	if known, pattern := h.mux.Handler(r); pattern == "" { // the mux answers as text, and says which methods are allowed
		refused := &unwritten{header: w.Header()}
		known.ServeHTTP(refused, r)
		answer(w, &refusal{status: refused.status})
		return
	}
	w.Header().Set(nameField, h.name)
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	h.mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), operatorKey{}, who)))
}

// An unwritten is a response of which only the header and the status are wanted.
type unwritten struct {
	header http.Header
	status int
}

func (u *unwritten) Header() http.Header               { return u.header }
func (u *unwritten) WriteHeader(status int)            { u.status = status }
func (u *unwritten) Write(p []byte) (n int, err error) { return len(p), nil }

func (h *handler) serve(act action) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch reply, err := act(r); {
		case err != nil:
			h.fail(w, r, err)
		case reply == nil:
			w.WriteHeader(http.StatusNoContent)
		default:
			w.Header().Set("Content-Type", "application/json")
			e := json.NewEncoder(w)
			e.SetIndent("", "  ") // people read it
			e.SetEscapeHTML(false)
			_ = e.Encode(reply) // the client may have hung up
		}
	}
}

// fail answers with an error. The answer contains the error's text only if the text
// describes the request.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	var shown *refusal
	switch {
	case errors.As(err, &shown):
	case errors.Is(err, ErrNotFound):
		shown = &refusal{http.StatusNotFound, err.Error()}
	case errors.Is(err, ErrBanned), errors.Is(err, ErrUneditable), errors.Is(err, overrides.ErrFull):
		shown = &refusal{http.StatusConflict, err.Error()}
	case errors.Is(err, overrides.ErrInvalid), errors.Is(err, algorithms.ErrInvalid):
		shown = &refusal{http.StatusBadRequest, err.Error()}
	default:
		h.logger.Error("ratelimit: console: failed request", "who", operator(r.Context()), "path", r.URL.Path, "error", err)
		shown = &refusal{status: http.StatusServiceUnavailable}
	}
	answer(w, shown)
}

// answer answers with a problem (RFC 9457).
func answer(w http.ResponseWriter, shown *refusal) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(shown.status)
	_ = json.NewEncoder(w).Encode(struct { // the client may have hung up
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail,omitempty"`
	}{"about:blank", http.StatusText(shown.status), shown.status, shown.detail})
}

// read reads the body of a request into v: one JSON object without unknown fields.
func read(r *http.Request, v any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return &refusal{http.StatusUnsupportedMediaType, "the body must be application/json"}
	}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	err := d.Decode(&v) // null makes v nil
	if err == nil && v != nil {
		if _, err = d.Token(); err == io.EOF {
			return nil
		}
	}
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return &refusal{http.StatusRequestEntityTooLarge, "the body is too long"}
	case errors.Is(err, algorithms.ErrInvalid):
		return err
	default:
		return malformed(err)
	}
}

func queryOf(r *http.Request) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, "the query is malformed"}
	}
	return query, nil
}

// parameters returns the query, which must have no parameter that is not allowed,
// and none twice.
func parameters(r *http.Request, allowed ...string) (url.Values, error) {
	query, err := queryOf(r)
	for name, all := range query {
		if len(all) > 1 || !slices.Contains(allowed, name) {
			return nil, &refusal{http.StatusBadRequest, "the query has an unknown parameter, or one twice"}
		}
	}
	return query, err
}
