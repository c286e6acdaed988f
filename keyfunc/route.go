package keyfunc

import (
	"cmp"
	"net/http"
	"reflect"

	"github.com/go-chi/chi/v5"

	"github.com/penstock-go/penstock/internal/keyaccess"
)

// unmatched is the route of all requests that no route matches. They share a
// bucket: if each path had its own, a scan would fill the store with them.
const unmatched = "unmatched"

// Route returns the Key rt=<template> of the route that serves the request, such as "GET /v1/orders/{id}" (escaped).
// It never fails on a request: those that no route matches (404, 405), and all outside of routers, share the key
// rt=unmatched.
//
// In chi, mount it anywhere behind middleware that rewrites the path or the method. HEAD counts as GET. Methods other
// than PATCH and those of RFC 9110 count as OTHER.
//
// In handlers of a http.ServeMux it is the registered pattern, without the prefix of an enclosing mux. In other
// routers, set the request's Pattern to the template before the middleware; RECIPES.md has the lines.
func Route() Key {
	k := newKey(func(dst []byte, q *Request) ([]byte, string, error) {
		dst = append(dst, "rt="...)
		if rctx := chi.RouteContext(q.Context()); rctx != nil {
			return appendChiRoute(dst, rctx, q.Request), "", nil
		}
		return appendEscaped(dst, cmp.Or(q.Pattern, unmatched)), "", nil
	}, keyaccess.Info{Kinds: []string{keyaccess.Route}})
	k.def.route = true
	return k
}

// RouteIn is [Route] for middleware around mux.
func RouteIn(mux *http.ServeMux) Key {
	var misconfiguration error
	if mux == nil {
		misconfiguration = misconfigurationf("RouteIn: the mux is nil")
	}
	k := newKey(func(dst []byte, q *Request) ([]byte, string, error) {
		h, pattern := mux.Handler(q.Request)
		if q.Method == http.MethodConnect && reflect.TypeOf(h) == redirectHandler {
			// To redirect a CONNECT the mux returns the path in place of the
			// pattern, and each path would be a key of its own.
			pattern = ""
		}
		return appendEscaped(append(dst, "rt="...), cmp.Or(pattern, unmatched)), "", nil
	}, keyaccess.Info{Kinds: []string{keyaccess.Route}}, misconfiguration)
	k.def.route = true
	return k
}

var redirectHandler = reflect.TypeOf(http.RedirectHandler("/", http.StatusTemporaryRedirect))

// foldMethod keeps the number of methods small, because clients make them up.
func foldMethod(method string) string {
	switch method {
	case http.MethodHead:
		return http.MethodGet
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return method
	}
	return "OTHER"
}
