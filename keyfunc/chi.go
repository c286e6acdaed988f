package keyfunc

import (
	"bytes"
	"cmp"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/go-chi/chi/v5"
)

func appendChiRoute(dst []byte, rctx *chi.Context, r *http.Request) []byte {
	routed := rctx.RoutePattern() // "" before the root router has routed
	if routed != "" && isInnerPattern(r.Pattern, routed) {
		dst = append(appendEscaped(dst, routed), "%20"...)
		return appendEscaped(dst, r.Pattern)
	}
	method := cmp.Or(rctx.RouteMethod, r.Method) // GetHead or a method override may have set the first
	template := chiTemplate(rctx, r, method, routed)
	if template == "" {
		return append(dst, unmatched...)
	}
	dst = append(append(dst, foldMethod(method)...), "%20"...)
	return appendEscaped(dst, template)
}

// isInnerPattern reports whether a ServeMux inside of chi has matched pattern.
// At each step of its routing chi sets the pattern to the template so far. A
// pattern that differs and ends in /* comes from an earlier step.
func isInnerPattern(pattern, routed string) bool {
	return pattern != "" && pattern != routed && !strings.HasSuffix(pattern, "/*")
}

// chiTemplate returns the whole template, or "" if no route matches. A partial
// template that ends in /* is not whole: sub-routers may follow. Then
// chiTemplate asks the root router where the path leads.
func chiTemplate(rctx *chi.Context, r *http.Request, method, routed string) string {
	if routed != "" && !strings.HasSuffix(routed, "/*") || rctx.Routes == nil {
		return routed
	}
	s := lookups.Get().(*lookup)
	defer s.release()
	path, ok := s.path(rctx, r)
	if !ok {
		return routed
	}
	template := rctx.Routes.Find(s.rctx, method, path)
	// middleware.GetHead serves a HEAD without a route of its own as GET, even if it
	// comes after this middleware.
	if template == "" && method == http.MethodHead {
		template = rctx.Routes.Find(s.rctx, http.MethodGet, path)
	}
	if len(template) > 1 {
		template = strings.TrimRight(template, "/")
	}
	return template
}

// A lookup asks a router without disturbing the request.
type lookup struct {
	rctx *chi.Context
	buf  []byte
}

var lookups = sync.Pool{New: func() any {
	return &lookup{rctx: chi.NewRouteContext()}
}}

func (s *lookup) release() {
	s.rctx.Reset()
	lookups.Put(s)
}

// path returns the path that the root router has routed, or will route. It may
// differ from the URL's path: StripSlashes and CleanPath leave the URL as it
// is, and StripPrefix changes it on the way. In a sub-router RoutePath is only
// the rest. There path builds the whole again, from the patterns so far, the
// values of their parameters and the rest.
func (s *lookup) path(rctx *chi.Context, r *http.Request) (path string, ok bool) {
	requested := cmp.Or(r.URL.RawPath, r.URL.Path, "/")
	switch {
	case len(rctx.RoutePatterns) > 0:
		if s.buf, ok = appendRouted(s.buf[:0], rctx); !ok {
			return "", false
		}
		if string(s.buf) == requested {
			return requested, true // the usual case, without an allocation
		}
		return string(s.buf), true
	case rctx.RoutePath != "":
		return rctx.RoutePath, true
	}
	return requested, true
}

// appendRouted fills the parameters of the patterns so far with their values
// and appends the rest. It skips parameters that handlers have added. It
// reports false if a parameter of a pattern has no value.
func appendRouted(dst []byte, rctx *chi.Context) ([]byte, bool) {
	keys, values := rctx.URLParams.Keys, rctx.URLParams.Values
	if len(keys) != len(values) {
		return dst, false
	}
	for n, pattern := range rctx.RoutePatterns {
		for pattern != "" {
			literal, name, after := cutParam(pattern)
			dst, pattern = append(dst, literal...), after
			if name == "" {
				break
			}
			i := slices.Index(keys, name)
			if i < 0 {
				return dst, false
			}
			dst = append(dst, values[i]...)
			if name == "*" && values[i] == "" {
				dst = appendRest(dst, rctx, n == len(rctx.RoutePatterns)-1)
			}
			keys, values = keys[i+1:], values[i+1:]
		}
	}
	return dst, true
}

// appendRest appends the rest of the path for a wildcard without a value. Mount
// has moved it to RoutePath, from where the next pattern has taken it, or will.
// Both begin with the slash that the wildcard's pattern ends with.
func appendRest(dst []byte, rctx *chi.Context, last bool) []byte {
	if last && rctx.RoutePath == "" {
		return dst
	}
	dst = bytes.TrimSuffix(dst, []byte("/"))
	if last {
		dst = append(dst, rctx.RoutePath...)
	}
	return dst
}

// cutParam cuts a pattern of chi, such as /v1/{id:[0-9]{3}}/*, around its
// first parameter. Without one the name is "".
func cutParam(pattern string) (literal, name, after string) {
	i := strings.IndexAny(pattern, "{*")
	if i < 0 {
		return pattern, "", ""
	}
	if pattern[i] == '*' {
		return pattern[:i], "*", ""
	}
	depth := 0
	for end := i; end < len(pattern); end++ {
		switch pattern[end] {
		case '{':
			depth++
		case '}':
			depth--
		}
		if depth == 0 {
			name, _, _ = strings.Cut(pattern[i+1:end], ":")
			return pattern[:i], name, pattern[end+1:]
		}
	}
	return pattern, "", ""
}
