package console

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

// TestWhyOfAnOverride: an override may come or change while its key is judged, and an address may have one that no limit counts.
func TestWhyOfAnOverride(t *testing.T) {
	limit := algorithms.TokenBucket(10, time.Minute)
	limits := []LimitState{{Reason: ByOverride, Limit: limit, Remaining: 3}}
	for name, tt := range map[string]struct {
		standing Standing
		want     string
	}{
		"off":              {Standing{Override: &ratelimit.Override{Mode: ratelimit.ModeOff}, Limits: limits}, "an override says off"},
		"a limit":          {Standing{Override: &ratelimit.Override{Limit: limit}, Limits: limits}, "token-bucket 10/1m has 3 left, from override"},
		"came just now":    {Standing{Limits: limits}, "token-bucket 10/1m has 3 left, from override"},
		"counts no limits": {Standing{Override: &ratelimit.Override{Limit: limit, Mode: ratelimit.ModeShadow}}, "an override says shadow"},
	} {
		tt.standing.Reason = ByOverride
		if got := tt.standing.why(); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}
