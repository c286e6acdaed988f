// The handlers of the API.

package main

import (
	"encoding/json"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/penstock-go/penstock/middleware"
)

// answer answers 200 and a body: a service would do its work here.
func answer(body map[string]any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, body) }
}

func getOrder(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"order": chi.URLParam(r, "id"), "state": "paid"})
}

func search(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"query": r.URL.Query().Get("q"), "hits": []string{}})
}

// login answers 401 to all credentials except those of the demo's user.
func login(w http.ResponseWriter, r *http.Request) {
	var credentials struct{ User, Password string }
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&credentials)
	if err != nil || credentials.User != "demo" || credentials.Password != "demo" {
		statusOnly(w, http.StatusUnauthorized)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"user": credentials.User})
}

// createCharge answers with the merchant's plan, which the limiter has found.
func createCharge(w http.ResponseWriter, r *http.Request) {
	verdict, _ := ratelimit.FromContext(r.Context())
	merchant, _ := verdict.Policy("charges-merchant")
	writeJSON(w, http.StatusOK, map[string]any{"charged": true, "plan": merchant.Tier})
}

const (
	reservedTokens = 500 // most completions use fewer
	maxTokens      = 10_000
)

// complete uses three quarters of the tokens that the client allows. It settles
// them while they arrive, as for a model whose answer is streamed.
func complete(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		MaxTokens int64 `json:"max_tokens"`
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&ask)
	if err != nil || ask.MaxTokens < 1 || ask.MaxTokens > maxTokens {
		statusOnly(w, http.StatusBadRequest)
		return
	}
	used := (ask.MaxTokens*3 + 3) / 4
	for part := range used / 1_000 {
		_ = ratelimit.Settle(r.Context(), (part+1)*1_000) // the last Settle has the total
	}
	if err := ratelimit.Settle(r.Context(), used); err != nil {
		statusOnly(w, http.StatusInternalServerError)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"used": used})
}

// notFound answers 404. OPTIONS * has no path: it asks for the server as a whole.
func notFound(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodOptions && r.RequestURI == "*" {
		w.Header().Set("Allow", "GET, HEAD, POST, OPTIONS")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	statusOnly(w, http.StatusNotFound)
}

// methodNotAllowed answers 405 and the methods that the path allows.
func methodNotAllowed(routes chi.Routes) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		match := func(method string) bool { return routes.Match(chi.NewRouteContext(), method, r.URL.Path) }
		if match(http.MethodGet) {
			w.Header()["Allow"] = []string{http.MethodGet, http.MethodHead}
		}
		if match(http.MethodPost) {
			w.Header().Add("Allow", http.MethodPost)
		}
		statusOnly(w, http.StatusMethodNotAllowed)
	}
}

func statusOnly(w http.ResponseWriter, code int) {
	writeJSON(w, code, map[string]any{"error": http.StatusText(code)})
}

func writeJSON(w http.ResponseWriter, code int, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the client may be gone
}
