// Command gateway limits requests, tokens, running streams and a month's dollars of each organisation, in one decision.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// A model yields pieces of an answer, each with the tokens that the request has used so far.
type model func(ctx context.Context, prompt string, maxTokens int64) iter.Seq2[string, int64]

type prompt struct {
	Prompt    string `json:"prompt"`
	MaxTokens int64  `json:"max_tokens"`
}

// tokens is the most that the prompt can cost: a token has at least one byte. It must fit the limits.
func (p prompt) tokens() int64 { return int64(len(p.Prompt)) + p.MaxTokens }

// A unit of money is a millionth of a dollar. A month's limit has at most 10^12 units: a million dollars.
const (
	dollar           = 1_000_000
	perMillionTokens = 15 * dollar
)

// price is the price of tokens, rounded up, so that no request is free.
func price(tokens int64) int64 { return (tokens*perMillionTokens + 999_999) / 1_000_000 }

type promptKey struct{}

func limits(limiter algorithms.Limiter, findOrganisation func(context.Context, string) (keyfunc.Identity, error)) (*ratelimit.Middleware, error) {
	organisation := keyfunc.APIKey("Authorization", findOrganisation)
	reserve := func(r *http.Request) int64 { return r.Context().Value(promptKey{}).(prompt).tokens() }
	money := func(r *http.Request) int64 { return price(reserve(r)) }
	without := func(r *http.Request) bool { return r.Context().Value(promptKey{}) == nil }
	return ratelimit.New(limiter, nil,
		ratelimit.Policy{Name: "requests", Key: organisation, Limit: algorithms.TokenBucket(600, time.Minute)},
		ratelimit.Policy{Name: "tokens", Key: organisation, Limit: algorithms.TokenBucket(100_000, time.Minute), Cost: reserve, Skip: without},
		ratelimit.Policy{Name: "budget", Key: organisation, Limit: algorithms.PerMonth(5_000*dollar, nil), Cost: money, Fail: algorithms.FailClosed, Skip: without},
		ratelimit.Policy{Name: "streams", Key: organisation, Limit: algorithms.Concurrent(20, 30*time.Second), Hidden: true})
}

// read bounds the numbers of a client, and puts them into the context for limits.
func read(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var p prompt
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&p); err != nil || p.MaxTokens < 1 || p.MaxTokens > 8_000 {
			http.Error(w, "want a prompt, and max_tokens from 1 to 8000", http.StatusBadRequest)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), promptKey{}, p)))
	})
}

// complete streams the answer. Settle corrects what was reserved, also if the client hangs up or the model fails: then
// the request has cost the tokens so far.
func complete(ask model) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := r.Context().Value(promptKey{}).(prompt)
		settle := func(used int64) {
			err := errors.Join(ratelimit.Settle(r.Context(), used, "tokens"), ratelimit.Settle(r.Context(), price(used), "budget"))
			if err != nil {
				log.Print(err)
			}
		}
		settle(0) // a model that fails at once costs nothing
		for text, used := range ask(r.Context(), p.Prompt, p.MaxTokens) {
			settle(used)
			if _, err := io.WriteString(w, text); err != nil {
				return // the client has hung up
			}
			_ = http.NewResponseController(w).Flush()
		}
	})
}

// forward passes requests without a prompt on to the vendor of the model, whose responses have rate limit fields, too.
// Handler puts headers.Gateway around a ReverseProxy, so a client reads one line of each field, of the nearer limit.
// Around another handler that forwards requests, put headers.Gateway yourself.
func forward(limited *ratelimit.Middleware, vendor *url.URL) http.Handler {
	return limited.Handler(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(vendor)
		r.Out.Header.Del("Authorization") // set your own key for the vendor
	}})
}

// echo stands for a model.
func echo(_ context.Context, prompt string, maxTokens int64) iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) { yield(prompt, min(int64(len(prompt)), maxTokens)) }
}

func main() {
	limited := ratelimit.Must(limits(algorithms.NewMemory(nil), func(_ context.Context, key string) (keyfunc.Identity, error) {
		return keyfunc.Identity{ID: "acme"}, nil // ask your database, behind a cache
	}))
	http.Handle("POST /v1/completions", read(limited.Handler(complete(echo))))
	http.Handle("GET /v1/models", forward(limited, &url.URL{Scheme: "http", Host: "127.0.0.1:9090"}))
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", nil))
}
