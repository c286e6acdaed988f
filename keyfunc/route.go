package keyfunc

import (
	"net/http"
	"reflect"

	"github.com/go-chi/chi/v5"
)

// unmatched is the route of all requests that no route matches. They share a
// bucket: if each path had its own, a scan would fill the store with them.
const unmatched = "unmatched"

// Route returns the Key rt=<template> of the route that serves the request,
// such as "GET /v1/orders/{id}" (escaped). The path itself is never part of
// it.
//
// In chi it works wherever the middleware is mounted, before or after the
// routing: Use, With, Group, and in sub-routers. Mount it after what rewrites
// the path or the method, such as StripSlashes and CleanPath. A route is the
// same with a trailing slash and without. HEAD counts as GET, whether or not
// middleware.GetHead serves it; methods outside RFC 9110 and PATCH count
// together, as OTHER.
//
// In handlers of a [http.ServeMux] it is the pattern of the request, as it was
// registered: without a method in it, all methods share a bucket. What an
// enclosing mux has matched, or StripPrefix removed, is not part of it. For a
// mux mounted in chi it is the template of chi and then the pattern.
//
// Requests that no route matches (404, 405) share the key rt=unmatched, and so
// do all requests when there is no router around the middleware: in front of a
// ServeMux use [RouteIn]. A [Join] must not begin with a route.
func Route() Key {
	k := newKey(func(dst []byte, r *http.Request) ([]byte, error) {
		dst = append(dst, "rt="...)
		if rctx := chi.RouteContext(r.Context()); rctx != nil {
			return appendChiRoute(dst, rctx, r), nil
		}
		return appendPattern(dst, r.Pattern), nil
	})
	k.route = true
	return k
}

// RouteIn returns the Key rt=<pattern> of the pattern in mux that matches the
// request, for middleware around the mux; see [Route] for the text. It looks
// the pattern up, which the mux then does again. A nil mux is a mistake.
func RouteIn(mux *http.ServeMux) Key {
	var mistake error
	if mux == nil {
		mistake = mistakef("RouteIn: the mux is nil")
	}
	k := newKey(func(dst []byte, r *http.Request) ([]byte, error) {
		h, pattern := mux.Handler(r)
		if r.Method == http.MethodConnect && reflect.TypeOf(h) == redirectHandler {
			// To redirect a CONNECT the mux returns the path in place of the
			// pattern, and each path would be a key of its own.
			pattern = ""
		}
		return appendPattern(append(dst, "rt="...), pattern), nil
	}, mistake)
	k.route = true
	return k
}

var redirectHandler = reflect.TypeOf(http.RedirectHandler("/", http.StatusTemporaryRedirect))

func appendPattern(dst []byte, pattern string) []byte {
	if pattern == "" {
		return append(dst, unmatched...)
	}
	return appendEscaped(dst, pattern)
}

// foldMethod keeps the number of methods small, since clients make them up.
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
