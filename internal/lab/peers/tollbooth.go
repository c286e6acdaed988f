package main

import (
	"net/http"
	"time"

	"github.com/didip/tollbooth/v8"
	tollboothlimiter "github.com/didip/tollbooth/v8/limiter"
)

var tollboothNoStore = quote{"Tollbooth does not require external storage since it uses an algorithm called [Token Bucket]", "README.md"}

var tollboothV8 = library{
	name: "didip/tollbooth", slug: "tollbooth", module: "github.com/didip/tollbooth/v8", store: "memory",
	open: func(_ *trial, q quota) (*limiter, error) {
		byClient := tollboothOf(q).SetHeader(clientHeader, []string{})
		l := overHTTP(tollbooth.LimitHandler(byClient, served))
		byPair := tollboothOf(q)
		l.pair = func(a, b string) (answer, error) {
			denied := tollbooth.LimitByKeys(byPair, []string{a, b})
			return answer{allowed: denied == nil, remaining: untold, wait: untold}, nil
		}
		return l, nil
	},
	byAddress: func(_ *trial, q quota, next http.Handler) (http.Handler, error) {
		return tollbooth.LimitHandler(tollboothOf(q), next), nil
	},
	absent: []string{"several", "wait", "burst", "instances", "outage", "outage-limit", "refund"},
	says: map[string]quote{
		"several":      {"LimitByKeys keeps track number of request made by keys separated by pipe.", "tollbooth.go"},
		"remaining":    {"`RateLimit-Remaining` The remaining tokens.", "README.md"},
		"wait":         {"`RateLimit-Reset` The rate-limiter time window duration in seconds (always 1s).", "README.md"},
		"burst":        {"LimitByKeys keeps track number of request made by keys separated by pipe.", "tollbooth.go"},
		"instances":    tollboothNoStore,
		"outage":       tollboothNoStore,
		"outage-limit": tollboothNoStore,
		"forged":       {"New in version >= 8, you must explicitly define how to pick the IP address.", "README.md"},
		"keys":         {"LimitByKeys keeps track number of request made by keys separated by pipe.", "tollbooth.go"},
		"refund":       {"Upon both success and rejection [RateLimit]", "README.md"},
	},
}

// tollboothOf forgets keys after a second, or after the window.
func tollboothOf(q quota) *tollboothlimiter.Limiter {
	l := tollbooth.NewLimiter(q.perSecond(), &tollboothlimiter.ExpirableOptions{DefaultExpirationTTL: max(time.Second, q.window)})
	return l.SetBurst(q.requests).SetIPLookup(tollboothlimiter.IPLookup{Name: "RemoteAddr"})
}
