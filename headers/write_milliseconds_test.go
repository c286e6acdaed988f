package headers_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/penstock-go/penstock/headers"
)

// TestMilliseconds: Retry-After-Ms is the exact wait, rounded up, never shorter than any limiter's wait, and read back.
func TestMilliseconds(t *testing.T) {
	const fine = headers.Draft | headers.Milliseconds
	for name, tt := range map[string]struct {
		dialect headers.Dialect
		before  []string // Retry-After, Retry-After-Ms
		wait    time.Duration
		want    []string
		read    time.Duration
	}{
		"a tenth":               {fine, nil, 100 * time.Millisecond, []string{"1", "100"}, 100 * time.Millisecond},
		"rounded up":            {fine, nil, 1_500_000_001, []string{"2", "1501"}, 1501 * time.Millisecond},
		"none":                  {fine, nil, 0, []string{"1", "1"}, time.Millisecond},
		"whole":                 {fine, nil, 2 * time.Second, []string{"2", "2000"}, 2 * time.Second},
		"at most 14 days":       {fine, nil, 1000 * time.Hour, []string{"1209600", "1209600000"}, 336 * time.Hour},
		"never":                 {fine, []string{"5", "4500"}, headers.Never, []string{"", ""}, 0},
		"off":                   {headers.Draft, nil, 100 * time.Millisecond, []string{"1", ""}, time.Second},
		"outer, longer":         {fine, []string{"3", "2100"}, 100 * time.Millisecond, []string{"3", "2100"}, 2100 * time.Millisecond},
		"outer, shorter":        {fine, []string{"1", "100"}, 200 * time.Millisecond, []string{"1", "200"}, 200 * time.Millisecond},
		"outer, seconds":        {fine, []string{"1", ""}, 100 * time.Millisecond, []string{"1", "1000"}, time.Second},
		"outer, inner is off":   {headers.Draft, []string{"1", "100"}, 1200 * time.Millisecond, []string{"2", "1200"}, 1200 * time.Millisecond},
		"outer, disagrees":      {fine, []string{"60", "100"}, time.Millisecond, []string{"60", "60000"}, time.Minute},
		"outer, malformed":      {fine, []string{"1", "soon"}, 300 * time.Millisecond, []string{"1", "1000"}, time.Second},
		"outer, no number":      {fine, []string{"Wed, 21 Oct 2015 07:28:00 GMT", ""}, 300 * time.Millisecond, []string{"1", "300"}, 300 * time.Millisecond},
		"outer, huge":           {fine, []string{"99999999999999999999", ""}, 300 * time.Millisecond, []string{"1209600", "1209600000"}, 336 * time.Hour},
		"beside the scalars":    {fine | headers.XRateLimit, nil, 100 * time.Millisecond, []string{"1", "100"}, 100 * time.Millisecond},
		"without other headers": {headers.Milliseconds, nil, 100 * time.Millisecond, []string{"1", "100"}, 100 * time.Millisecond},
	} {
		h := http.Header{}
		for i, value := range tt.before {
			if value != "" {
				h.Set([]string{"Retry-After", "Retry-After-Ms"}[i], value)
			}
		}
		tt.dialect.Write(h, headers.Response{Denied: true, RetryAfter: tt.wait})
		if s, ms := h.Get("Retry-After"), h.Get("Retry-After-Ms"); s != tt.want[0] || ms != tt.want[1] {
			t.Errorf("%s: got %q and %q, want %q", name, s, ms, tt.want)
		}
		if got := headers.Read(http.StatusTooManyRequests, h, time.Time{}).Wait; got != tt.read {
			t.Errorf("%s: got a wait of %v, want %v", name, got, tt.read)
		}
	}
	h := http.Header{}
	fine.Write(h, headers.Response{})
	if len(h) > 0 {
		t.Errorf("got %v of an admitted response, want nothing", h)
	}
}

// TestReadMilliseconds: decimals count, and Retry-After counts where the two disagree.
func TestReadMilliseconds(t *testing.T) {
	for _, tt := range []struct {
		seconds, ms string
		want        time.Duration
	}{
		{"", "250.5", 251 * time.Millisecond}, {"1", "250.5", 251 * time.Millisecond}, {"2", "250", 2 * time.Second}, {"1", "2500", time.Second},
		{"1.5", "1700", 1700 * time.Millisecond}, {"1", "-5", time.Second}, {"0", "0", 0}, {"0.2", "", time.Second},
	} {
		h := http.Header{}
		if tt.seconds != "" {
			h.Set("Retry-After", tt.seconds)
		}
		h.Set("Retry-After-Ms", tt.ms)
		if got := headers.Read(http.StatusTooManyRequests, h, time.Time{}).Wait; got != tt.want {
			t.Errorf("%q and %q: got %v, want %v", tt.seconds, tt.ms, got, tt.want)
		}
	}
}
