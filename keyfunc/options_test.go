package keyfunc

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-chi/chi/v5"
)

// OPTIONS * has no path, so no route.
func TestRouteOfOptionsOfTheServer(t *testing.T) {
	var inChi string
	r := chi.NewRouter()
	r.Use(func(http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { inChi, _ = Route().Of(r) })
	})
	r.Get("/a", nil)
	r.Options("/*", nil)
	q := httptest.NewRequest(http.MethodOptions, "*", nil)
	r.ServeHTTP(nil, q)
	mux := http.NewServeMux()
	mux.Handle("GET /a", http.NotFoundHandler())
	around, _ := RouteIn(mux).Of(q)
	if inChi != "rt=unmatched" || around != "rt=unmatched" {
		t.Errorf("got %q in chi and %q around a ServeMux, want rt=unmatched", inChi, around)
	}
}
