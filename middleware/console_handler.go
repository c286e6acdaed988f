package middleware

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/overrides"
	"github.com/penstock-go/penstock/headers"
)

// maxBody bounds the body of a request to a console: many times what one takes.
const maxBody = 8 << 10

// Handler returns the console as JSON over HTTP, for those whom authorize lets
// in: its error is answered 403, without its text, and who it names is logged
// with every change. It must not be nil, for whoever comes through can switch
// all limits off.
//
//	Method  Path                      Does
//	GET     /policies                 lists the policies and their limits
//	GET     /keys?policy=&key=&tier=  explains
//	POST    /reset                    {"policy":"p","key":"usr=42"}
//	POST    /grant                    {"policy":"p","key":"usr=42","units":10}, and perhaps "tier"
//	POST    /ban                      {"policy":"p","key":"usr=42","until":"2026-11-21T12:00:00Z"}; until may be left out
//	POST    /unban                    {"policy":"p","key":"usr=42"}
//	GET     /overrides/{policy}       lists a policy's overrides; ?key= only that of one key
//	PUT     /overrides/{policy}?key=  sets one, e.g. {"limit":"500/1m","mode":"shadow","until":"2026-11-21T12:00:00Z"}
//	DELETE  /overrides/{policy}?key=  clears one
//
// The key * is that of everyone, and the policy * is all policies. Changes are
// answered 204. What is not understood whole changes nothing: unknown fields and
// parameters are errors. Browsers cannot be made to send requests for another
// site: those must be of this origin, and be application/json.
//
// Mount it under http.StripPrefix, on an address that clients do not reach.
func (c *Console) Handler(authorize func(*http.Request) (who string, err error)) (http.Handler, error) {
	if authorize == nil {
		return nil, errors.New("middleware: a console's handler needs a function that authorizes")
	}
	h := &consoleHandler{refusals: troubles{logger: c.logger()}, console: c, authorize: authorize, logger: c.logger(), origin: http.NewCrossOriginProtection()}
	for path, e := range map[string]endpoint{
		"/policies":           {http.MethodGet: h.policies},
		"/keys":               {http.MethodGet: h.explain},
		"/reset":              {http.MethodPost: h.reset},
		"/grant":              {http.MethodPost: h.grant},
		"/ban":                {http.MethodPost: h.ban},
		"/unban":              {http.MethodPost: h.unban},
		"/overrides/{policy}": {http.MethodGet: h.overrides, http.MethodPut: h.set, http.MethodDelete: h.clear},
	} {
		h.mux.HandleFunc(path, h.serve(e))
	}
	h.mux.HandleFunc("/", h.serve(nil))
	return h, nil
}

type consoleHandler struct {
	console   *Console
	authorize func(*http.Request) (who string, err error)
	logger    *slog.Logger
	refusals  troubles // guesses come in floods
	origin    *http.CrossOriginProtection
	mux       http.ServeMux
}

// An endpoint is what a path does, by method. It returns what is to be answered
// as JSON; nil for nothing.
type endpoint map[string]func(r *http.Request) (any, error)

// A refusal is an error whose text is for the operator.
type refusal struct {
	status int
	detail string
}

func (e *refusal) Error() string { return e.detail }

// ServeHTTP lets nobody see what there is who may not use it.
func (h *consoleHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	who, err := h.authorize(r)
	if err == nil {
		err = h.origin.Check(r)
	}
	if err != nil {
		h.refusals.log("console: a request was refused", err)
		answer(w, &refusal{status: http.StatusForbidden})
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	h.mux.ServeHTTP(w, r.WithContext(withOperator(r.Context(), who)))
}

func (h *consoleHandler) serve(e endpoint) http.HandlerFunc {
	allowed := slices.Sorted(maps.Keys(e))
	if e[http.MethodGet] != nil {
		allowed = append(allowed, http.MethodHead)
	}
	return func(w http.ResponseWriter, r *http.Request) {
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		act := e[method]
		switch {
		case len(e) == 0:
			answer(w, &refusal{status: http.StatusNotFound})
			return
		case act == nil:
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			answer(w, &refusal{status: http.StatusMethodNotAllowed})
			return
		}
		reply, err := act(r)
		if err != nil {
			h.fail(w, r, err)
			return
		}
		succeed(w, reply)
	}
}

// succeed answers with a reply as JSON, or with 204 if there is none.
func succeed(w http.ResponseWriter, reply any) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if reply == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(reply) // the client may be gone; there is nobody to tell
}

// fail answers with an error. Only texts that speak of the request itself, and
// were written to be read, are told.
func (h *consoleHandler) fail(w http.ResponseWriter, r *http.Request, err error) {
	var told *refusal
	switch {
	case errors.As(err, &told):
	case errors.Is(err, ErrNotFound):
		told = &refusal{http.StatusNotFound, err.Error()}
	case errors.Is(err, ErrUneditable), errors.Is(err, overrides.ErrFull):
		told = &refusal{http.StatusConflict, err.Error()}
	case errors.Is(err, overrides.ErrInvalid), errors.Is(err, algorithms.ErrInvalid):
		told = &refusal{http.StatusBadRequest, err.Error()}
	default:
		h.logger.Error("ratelimit: console: a request failed", "who", operator(r.Context()), "path", r.URL.Path, "error", err)
		told = &refusal{status: http.StatusServiceUnavailable}
	}
	answer(w, told)
}

// answer answers with a problem (RFC 9457).
func answer(w http.ResponseWriter, told *refusal) {
	headers.SetProblem(w.Header())
	w.WriteHeader(told.status)
	body := headers.Problem(told.status)
	if detail, err := json.Marshal(told.detail); err == nil && told.detail != "" {
		body = slices.Concat(body[:len(body)-1], []byte(`,"detail":`), detail, []byte("}"))
	}
	_, _ = w.Write(body) // the client may be gone; there is nobody to tell
}

// read reads the body of a request into v: one value of JSON, and nothing that v
// has no place for.
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
	case errors.Is(err, overrides.ErrInvalid), errors.Is(err, algorithms.ErrInvalid):
		return err
	default:
		return &refusal{http.StatusBadRequest, "the body is not one JSON object with the fields that this takes"}
	}
}

// parameters returns those of the query, which has no others and each once.
func parameters(r *http.Request, required string, optional ...string) (map[string]string, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, "the query is not well-formed"}
	}
	values := make(map[string]string)
	for name, all := range query {
		if len(all) > 1 || name != required && !slices.Contains(optional, name) {
			return nil, &refusal{http.StatusBadRequest, "the query has a parameter that is unknown, or twice there"}
		}
		values[name] = all[0]
	}
	if required != "" && values[required] == "" {
		return nil, &refusal{http.StatusBadRequest, "the query lacks the parameter " + required}
	}
	return values, nil
}
