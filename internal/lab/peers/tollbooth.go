package main

import (
	"net/http"
	"time"

	"github.com/didip/tollbooth/v8"
	tollboothlimiter "github.com/didip/tollbooth/v8/limiter"
)

// tollboothV8 forgets keys after a second, or after the window.
var tollboothV8 = library{
	name: "didip/tollbooth", slug: "tollbooth", module: "github.com/didip/tollbooth/v8", store: "memory", pairs: true,
	handler: func(_ *trial, q quota, by keyed) http.Handler {
		l := tollbooth.NewLimiter(q.perSecond(), &tollboothlimiter.ExpirableOptions{DefaultExpirationTTL: max(time.Second, q.window)})
		l.SetBurst(q.requests).SetIPLookup(tollboothlimiter.IPLookup{Name: "RemoteAddr"})
		switch len(by) {
		case 1:
			l.SetHeader(by[0], []string{})
		case 2:
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if denied := tollbooth.LimitByKeys(l, []string{r.Header.Get(by[0]), r.Header.Get(by[1])}); denied != nil {
					http.Error(w, denied.Message, denied.StatusCode)
				}
			})
		}
		return tollbooth.LimitHandler(l, served)
	},
	absent: []string{"wait", "burst"},
	says: map[string]quote{
		"remaining": {"`RateLimit-Remaining` The remaining tokens.", "README.md"},
		"wait":      {"`RateLimit-Reset` The rate-limiter time window duration in seconds (always 1s).", "README.md"},
		"burst":     {"LimitByKeys keeps track number of request made by keys separated by pipe.", "tollbooth.go"},
		"instances": {"Tollbooth does not require external storage since it uses an algorithm called [Token Bucket]", "README.md"},
		"forged":    {"New in version >= 8, you must explicitly define how to pick the IP address.", "README.md"},
		"keys":      {"LimitByKeys keeps track number of request made by keys separated by pipe.", "tollbooth.go"},
	},
}
