// Imitations of services: 60 requests in a window of 6 s. They differ in what a response says.

package finish

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const (
	quota  = 60
	window = 6 * time.Second
)

// An imitation is a fixed window. say writes the fields of a response.
type imitation struct {
	status int
	say    func(h http.Header, s state)

	mu   sync.Mutex
	used int
	ends time.Time
}

// A state is what an imitation knows when it answers.
type state struct {
	denied    bool
	remaining int
	wait      time.Duration // until the window ends
	ends      time.Time
}

func (i *imitation) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	now := time.Now()
	if !now.Before(i.ends) {
		i.used, i.ends = 0, now.Add(window)
	}
	denied := i.used >= quota
	if !denied {
		i.used++
	}
	s := state{denied, quota - i.used, i.ends.Sub(now), i.ends}
	i.mu.Unlock()
	i.say(w.Header(), s)
	if denied {
		w.WriteHeader(i.status)
	}
}

// imitations are services, and two buckets. A server that advertises its limit in each response has a
// name with an asterisk.
func imitations() []service {
	all := []struct {
		name   string
		status int
		say    func(h http.Header, s state)
	}{
		{"GitHub, 403 and epoch*", 403, func(h http.Header, s state) {
			scalars(h, "X-RateLimit-", s, strconv.FormatInt(epoch(s.ends), 10))
		}},
		{"GitHub, 403 and Retry-After", 403, retryAfter},
		{"Stripe", 429, func(http.Header, state) {}},
		{"OpenAI*", 429, func(h http.Header, s state) {
			h.Set("X-RateLimit-Limit-Requests", strconv.Itoa(quota))
			h.Set("X-RateLimit-Remaining-Requests", strconv.Itoa(s.remaining))
			h.Set("X-RateLimit-Reset-Requests", s.wait.Round(time.Millisecond).String())
			if s.denied {
				h.Set("Retry-After-Ms", strconv.FormatInt(int64(s.wait/time.Millisecond)+1, 10))
			}
		}},
		{"Anthropic*", 429, func(h http.Header, s state) {
			h.Set("Anthropic-RateLimit-Requests-Limit", strconv.Itoa(quota))
			h.Set("Anthropic-RateLimit-Requests-Remaining", strconv.Itoa(s.remaining))
			h.Set("Anthropic-RateLimit-Requests-Reset", time.Unix(epoch(s.ends), 0).UTC().Format(time.RFC3339))
			retryAfter(h, s)
		}},
		{"Discord*", 429, func(h http.Header, s state) {
			scalars(h, "X-RateLimit-", s, fmt.Sprintf("%.3f", float64(s.ends.UnixMilli())/1000))
			h.Set("X-RateLimit-Reset-After", fmt.Sprintf("%.3f", s.wait.Seconds()))
			retryAfter(h, s)
		}},
		{"Slack", 429, retryAfter},
		{"Shopify", 429, func(h http.Header, s state) {
			h.Set("X-Shopify-Shop-Api-Call-Limit", fmt.Sprintf("%d/%d", quota-s.remaining, quota))
			if s.denied {
				h.Set("Retry-After", "2.0")
			}
		}},
		{"X*", 429, func(h http.Header, s state) {
			scalars(h, "X-Rate-Limit-", s, strconv.FormatInt(epoch(s.ends), 10))
		}},
	}
	var services []service
	for _, i := range all {
		services = append(services, service{i.name, func() http.Handler { return &imitation{status: i.status, say: i.say} }})
	}
	return append(services,
		service{"bucket, bare 503", func() http.Handler { return &bucket{burst: 20, status: 503} }},
		service{"bucket, bare 503, no burst", func() http.Handler { return &bucket{burst: 1, status: 503} }},
		service{"bucket, 429 and Retry-After", func() http.Handler { return &bucket{burst: 20, status: 429, hint: true} }},
	)
}

// A service is a handler with a name.
type service struct {
	name  string
	fresh func() http.Handler
}

// A bucket admits 10 requests per second, and a burst.
type bucket struct {
	burst  float64
	hint   bool
	status int

	mu   sync.Mutex
	used float64
	at   time.Time
}

func (b *bucket) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	b.mu.Lock()
	now := time.Now()
	b.used = max(b.used-10*now.Sub(b.at).Seconds(), 0)
	b.at = now
	denied := b.used+1 > b.burst+1e-9
	if !denied {
		b.used++
	}
	b.mu.Unlock()
	if !denied {
		return
	}
	if b.hint {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(b.status)
}

// A sliding counter denies above 60 requests in the latest 6 s, and counts denied requests, too, as HAProxy's http_req_rate
// does. It takes a share of the requests of the period before.
type sliding struct {
	mu            sync.Mutex
	begun         time.Time
	before, count int64
}

func (s *sliding) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Sub(s.begun) >= window {
		s.before, s.count, s.begun = s.count, 0, s.begun.Add(window)
		if now.Sub(s.begun) >= window {
			s.before, s.begun = 0, now
		}
	}
	s.count++
	left := window - now.Sub(s.begun)
	if (s.before*int64(left)+s.count*int64(window))/int64(window) > quota {
		w.WriteHeader(http.StatusTooManyRequests)
	}
}

func scalars(h http.Header, prefix string, s state, reset string) {
	h.Set(prefix+"Limit", strconv.Itoa(quota))
	h.Set(prefix+"Remaining", strconv.Itoa(s.remaining))
	h.Set(prefix+"Reset", reset)
}

func retryAfter(h http.Header, s state) {
	if s.denied {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(s.wait.Seconds()))))
	}
}

func epoch(t time.Time) int64 { return t.Add(time.Second - 1).Unix() }
