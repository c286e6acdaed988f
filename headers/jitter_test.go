package headers_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/headers"
	"pgregory.net/rapid"
)

// TestJitterValues pins the hash, because instances of two versions must agree on a
// client's wait. Another language's SHA-256 and unbounded integers computed these
// values.
func TestJitterValues(t *testing.T) {
	tests := []struct {
		spread         time.Duration
		policy, client string
		slot           int64
		want           time.Duration
	}{
		{10 * time.Second, "charges", "ip=192.0.2.1", 1795262460, 1823890646},
		{10 * time.Second, "charges", "ip=192.0.2.2", 1795262460, 9170584340},
		{10 * time.Second, "charges", "ip=192.0.2.1", 1795262520, 6956274322},
		{time.Second, "a", "bc", 0, 854457384},
		{time.Second, "ab", "c", 0, 942576062},
		{math.MaxInt64, "", "", -1, 4340551910814411724},
		{1, "p", "c", 5, 0},
		{30 * time.Second, strings.Repeat("x", 64), strings.Repeat("k", 300), 7, 2411034961},
		{0, "p", "c", 5, 0},
		{-time.Second, "p", "c", 5, 0},
	}
	for _, tt := range tests {
		if got := headers.Jitter(tt.spread, tt.policy, tt.client, tt.slot); got != tt.want {
			t.Errorf("%+v: got %d", tt, got)
		}
	}
}

// TestJitterOfAThousand has W24: clients that wait for the end of one window come
// back after it, within the spread, and evenly.
func TestJitterOfAThousand(t *testing.T) {
	const clients = 1000
	q := window(t, "a", 100, 5*time.Minute)
	const spread = 30 * time.Second
	wait := 17301 * ms
	first, last := int64(math.MaxInt64), int64(0)
	var perTenth [10]int
	for i := range clients {
		jitter := headers.Jitter(spread, "a", fmt.Sprintf("usr=%d", i), 1795262460)
		if again := headers.Jitter(spread, "a", fmt.Sprintf("usr=%d", i), 1795262460); again != jitter {
			t.Fatalf("client %d: got %v and %v", i, jitter, again)
		}
		perTenth[10*jitter/spread]++
		h := write(headers.Draft, denied(headers.State{Quota: q, Denied: true, RetryAfter: wait + jitter}))
		limits, err := readLimits(h["Ratelimit"])
		if err != nil || len(limits) != 1 || h.Get("Retry-After") != fmt.Sprint(limits[0].t) {
			t.Fatalf("client %d: got %v, %v", i, h, err)
		}
		first, last = min(first, limits[0].t), max(last, limits[0].t)
	}
	if first < 18 {
		t.Errorf("got Retry-After %d, want at least 18", first)
	}
	if got, most := last-first, int64(spread/time.Second)+1; got > most {
		t.Errorf("got waits %d s apart, want at most %d", got, most)
	}
	// 100 are expected in each tenth, with a standard deviation of 9.5.
	for i, n := range perTenth {
		if n < 60 || n > 140 {
			t.Errorf("got %d clients in tenth %d, want about 100", n, i)
		}
	}
}

// TestJitterCountsDown makes sure that a client that polls sees one instant come
// nearer, not a new instant each time.
func TestJitterCountsDown(t *testing.T) {
	q := window(t, "a", 100, time.Minute)
	jitter := headers.Jitter(6*time.Second, "a", "usr=1", 1795262460)
	want := ceil(seconds(17301*ms + jitter))
	for passed := time.Duration(0); passed < 17*time.Second; passed += time.Second {
		wait := 17301*ms - passed + jitter
		h := write(headers.Draft, denied(headers.State{Quota: q, Denied: true, RetryAfter: wait}))
		if got := h.Get("Retry-After"); got != fmt.Sprint(want) {
			t.Fatalf("after %v: got %s, want %d", passed, got, want)
		}
		want--
	}
}

func TestJitterBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spread := time.Duration(rapid.Int64Min(1).Draw(t, "spread"))
		jitter := headers.Jitter(spread, rapid.String().Draw(t, "policy"), rapid.String().Draw(t, "client"),
			rapid.Int64().Draw(t, "slot"))
		if jitter < 0 || jitter >= spread {
			t.Errorf("got %v of %v", jitter, spread)
		}
	})
}
