// Package quota, which a minor version may change, shows clients their own limits before a 429 does:
//
//	mux.Handle("GET /v1/quota", quota.Handler(limited))
package quota

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

// A quota is what a client reads of a policy. Its waits are in seconds, rounded up.
type quota struct {
	Policy     string           `json:"policy"`
	Limit      algorithms.Limit `json:"limit"` // e.g. "token-bucket 60/1m"
	Most       int64            `json:"most"`  // units at once
	Remaining  *int64           `json:"remaining,omitempty"`
	UnitAfter  *int64           `json:"unit_after,omitempty"`  // until one can be taken
	ResetAfter *int64           `json:"reset_after,omitempty"` // until all are back
}

// Handler answers a request with the quotas of its own client, as RateLimit fields and as JSON, and charges nothing:
//
//	{"quotas":[{"policy":"month","limit":"calendar-window 10000/month","most":10000,"remaining":8123,"unit_after":0,"reset_after":91500}]}
//
// It shows the policies of the Middlewares that headers describe, so none that is Hidden, in Capacity or in Shadow, and
// leaves out keys that have the request's route, because that is the route of this page. Without figures, no limiter could
// decide. A client without a valid identity, or one that is banned, receives the refusal of a Middleware. Unknown API keys
// count as guesses, as everywhere.
//
// Skip and LimitOf of the policies run for this request, Cost and observers do not. Nothing limits the requests to the
// page itself: put a Middleware by address around it.
func Handler(all ...*ratelimit.Middleware) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := struct {
			Quotas []quota `json:"quotas"`
		}{[]quota{}}
		for _, m := range all {
			v := m.Inside().Look(w.Header(), r)
			if !v.Allowed {
				m.Deny(w, r, v)
				return
			}
			for i := range v.Policies {
				page.Quotas = append(page.Quotas, quotaOf(&v.Policies[i]))
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(page) // the client may have hung up
	})
}

func quotaOf(p *ratelimit.PolicyVerdict) quota {
	q := quota{Policy: p.Name, Limit: p.Limit, Most: p.Limit.Burst()}
	if d := &p.Decision; d.Source != algorithms.Undecided {
		q.Remaining, q.UnitAfter, q.ResetAfter = &d.Remaining, seconds(d.UnitAfter), seconds(d.ResetAfter)
	}
	return q
}

// seconds rounds a wait up; nil means for ever.
func seconds(d time.Duration) *int64 {
	if d == algorithms.Never {
		return nil
	}
	s := int64((d + time.Second - 1) / time.Second)
	return &s
}
