package comeback_test

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/internal/draw"
	"github.com/penstock-go/penstock/middleware/internal/comeback"
)

// left is the rest of a window, the wait without jitter.
const left = 17301 * time.Millisecond

// window returns the quota of a window of 100 requests.
func window(t *testing.T, length time.Duration) *headers.Quota {
	t.Helper()
	q, err := headers.NewQuota(headers.QuotaConfig{Name: "a", Limit: 100, Requests: 100, Window: length})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// denial returns the header of a denial with a wait.
func denial(q *headers.Quota, wait time.Duration) http.Header {
	h := http.Header{}
	headers.Draft.Write(h, headers.Response{
		Quotas: []*headers.Quota{q}, States: []headers.State{{Quota: q, Denied: true, RetryAfter: wait}}, Denied: true,
	})
	return h
}

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
		if got := comeback.Jitter(tt.spread, tt.policy, tt.client, tt.slot); got != tt.want {
			t.Errorf("%+v: got %d", tt, got)
		}
	}
}

// TestJitterOfAThousand has W24: clients that wait for the end of one window come
// back after it, within the spread, and evenly.
func TestJitterOfAThousand(t *testing.T) {
	const clients = 1000
	q := window(t, 5*time.Minute)
	const spread = 30 * time.Second
	first, last := int64(math.MaxInt64), int64(0)
	var perTenth [10]int
	for i := range clients {
		jitter := comeback.Jitter(spread, "a", fmt.Sprintf("usr=%d", i), 1795262460)
		if again := comeback.Jitter(spread, "a", fmt.Sprintf("usr=%d", i), 1795262460); again != jitter {
			t.Fatalf("client %d: got %v and %v", i, jitter, again)
		}
		perTenth[10*jitter/spread]++
		h := denial(q, left+jitter)
		wait, err := strconv.ParseInt(h.Get("Retry-After"), 10, 64)
		if want := fmt.Sprintf(`"a";r=0;t=%d`, wait); err != nil || h.Get("RateLimit") != want {
			t.Fatalf("client %d: got %v, %v, want %s", i, h, err, want)
		}
		first, last = min(first, wait), max(last, wait)
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
	q := window(t, time.Minute)
	jitter := comeback.Jitter(6*time.Second, "a", "usr=1", 1795262460)
	want := int64((left + jitter + time.Second - 1) / time.Second) // rounded up
	for passed := time.Duration(0); passed < 17*time.Second; passed += time.Second {
		if got := denial(q, left-passed+jitter).Get("Retry-After"); got != fmt.Sprint(want) {
			t.Fatalf("after %v: got %s, want %d", passed, got, want)
		}
		want--
	}
}

func TestJitterBounds(t *testing.T) {
	draw.Check(t, func(t *testing.T, v *draw.Values) {
		spread := time.Duration(v.Int64(1, math.MaxInt64))
		policy, client := v.Text("aé|=\x00", 0, 20), v.Text("aé|=\x00", 0, 300)
		jitter := comeback.Jitter(spread, policy, client, v.Int64(math.MinInt64, math.MaxInt64))
		if jitter < 0 || jitter >= spread {
			t.Errorf("got %v of %v", jitter, spread)
		}
	})
}

func TestJitterAllocatesNothing(t *testing.T) {
	if got := testing.AllocsPerRun(100, func() { comeback.Jitter(time.Second, "peruser", "usr=42", 1795262460) }); got != 0 {
		t.Errorf("got %v allocations, want 0", got)
	}
}

// Two clients wait for the end of the same window of one minute, and come back
// apart.
func ExampleJitter() {
	const spread = 6 * time.Second // a tenth of the window
	end := time.Unix(1795262460, 0)
	for _, client := range []string{"usr=1", "usr=2"} {
		wait := left + comeback.Jitter(spread, "peruser", client, end.Unix())
		fmt.Println(wait.Round(time.Millisecond))
	}
	// Output:
	// 19.889s
	// 18.756s
}
