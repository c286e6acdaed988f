package keyfunc

import (
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"
)

// RouteKey returns the key that [Route] and [RouteIn] give requests of a
// template, e.g. "GET /v1/orders/{id}".
func RouteKey(template string) string {
	return string(appendPattern([]byte("rt="), template))
}

// Templates returns the templates of all routes of a chi router, sorted, as
// [Route] has them: with GET for HEAD, and without trailing slashes. It reports
// false for routers that do not tell their routes, such as http.ServeMux.
func Templates(router http.Handler) ([]string, bool) {
	routes, ok := router.(chi.Routes)
	if !ok {
		return nil, false
	}
	var all []string
	err := chi.Walk(routes, func(method, template string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if len(template) > 1 {
			template = strings.TrimRight(template, "/")
		}
		all = append(all, foldMethod(method)+" "+template)
		return nil
	})
	slices.Sort(all)
	return slices.Compact(all), err == nil
}
