package headers_test

import (
	"math"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/internal/draw"
)

// drawSubject draws a quota of any kind and a State that need not make sense. The
// fields have to be well-formed and honest nevertheless.
func drawSubject(t *testing.T, v *draw.Values) subject {
	t.Helper()
	c := headers.QuotaConfig{
		Name:       v.Text(printable, 1, 64),
		Limit:      v.Int64(0, draw.Of(v, int64(200), 999_999_999_999_999)),
		Continuous: v.Bool(),
		Unit:       draw.Of(v, "", "requests", "content-bytes", `a "b\`),
	}
	switch {
	case v.Int(0, 9) == 0:
		c.Unit = "concurrent-requests"
	case c.Continuous:
		c.Requests = v.Int64(1, draw.Of(v, int64(200), math.MaxInt64))
		c.Window = drawWindow(v)
	default:
		c.Requests = c.Limit
		c.Window = drawWindow(v)
	}
	q, err := headers.NewQuota(c)
	if err != nil {
		t.Fatal(err)
	}
	return subject{c, headers.State{
		Quota:      q,
		Denied:     v.Bool(),
		Remaining:  draw.Of(v, v.Int64(-1, 200), v.Int64(0, max(c.Limit, 1)), v.Int64(math.MinInt64, math.MaxInt64)),
		RetryAfter: drawWait(v),
		ResetAfter: drawWait(v),
		UnitAfter:  drawWait(v),
	}}
}

// printable has the characters from space to tilde.
var printable = func() string {
	var all []byte
	for c := byte(' '); c <= '~'; c++ {
		all = append(all, c)
	}
	return string(all)
}()

func drawWindow(v *draw.Values) time.Duration {
	return time.Duration(v.Int64(1, draw.Of(v, int64(5*time.Second), int64(400*24*time.Hour), math.MaxInt64)))
}

func drawWait(v *draw.Values) time.Duration {
	return time.Duration(draw.Of(v,
		v.Int64(0, int64(time.Minute)), v.Int64(0, int64(400*24*time.Hour)),
		draw.Of(v, 0, 1, int64(time.Second), math.MaxInt64, math.MaxInt64-1, -1), v.Int64(math.MinInt64, math.MaxInt64),
	))
}

// drawResponse draws a response about some subjects, and a dialect.
func drawResponse(t *testing.T, v *draw.Values) (headers.Dialect, []subject, headers.Response) {
	t.Helper()
	subjects := draw.Some(v.Int(0, 5), func() subject { return drawSubject(t, v) })
	resp := headers.Response{
		Denied:     v.Bool(),
		RetryAfter: drawWait(v),
		Now:        time.Unix(v.Int64(0, 1<<40), v.Int64(0, 999_999_999)),
	}
	for _, s := range subjects {
		resp.Quotas = append(resp.Quotas, s.state.Quota)
		resp.States = append(resp.States, s.state)
	}
	return headers.Dialect(v.Int(0, 7)), subjects, resp
}

// TestWriteReadsBack has W23, W26 and W27 for any arguments.
func TestWriteReadsBack(t *testing.T) {
	draw.Check(t, func(t *testing.T, v *draw.Values) {
		d, subjects, resp := drawResponse(t, v)
		h := write(d, resp)
		if err := audit(d, subjects, resp, h); err != nil {
			t.Fatalf("%v\n%s", err, dump(h))
		}
	})
}

// TestSources makes sure that Write changes no argument, and that the lines of a
// second limiter do not change the lines of the first.
func TestSources(t *testing.T) {
	draw.Check(t, func(t *testing.T, v *draw.Values) {
		d, _, resp := drawResponse(t, v)
		h := write(d, resp)
		first := h.Clone()
		states, quotas := slices.Clone(resp.States), slices.Clone(resp.Quotas)
		d.Write(h, resp)
		for i, s := range resp.States {
			if s.Quota != states[i].Quota || s.Remaining != states[i].Remaining || quotas[i] != resp.Quotas[i] {
				t.Fatal("an argument was changed")
			}
		}
		for _, key := range []string{"Ratelimit", "Ratelimit-Policy"} {
			want := append(first[key], first[key]...)
			if key == "Ratelimit" && resp.Denied && first.Get("Retry-After") == "" {
				want = first[key] // it does not show that the first limiter has denied the request
			}
			if !slices.Equal(h[key], want) {
				t.Fatalf("%s: got %q, want %q", key, h[key], want)
			}
			delete(h, key)
			delete(first, key)
		}
		// Two equal limiters have the scalars of one.
		if got, want := dump(h), dump(first); got != want {
			t.Fatalf("got\n%swant\n%s", got, want)
		}
	})
}

// TestSpreadingClient has the promise behind r·w <= q·t: a client that spaces
// r requests over t stays within the rate of the policy in every part of a window.
func TestSpreadingClient(t *testing.T) {
	draw.Check(t, func(t *testing.T, v *draw.Values) {
		limit := v.Int64(1, 1000)
		span := time.Duration(v.Int64(1, 3600)) * time.Second
		q := headers.QuotaConfig{Name: "a", Limit: limit, Requests: limit, Window: span}
		quota, err := headers.NewQuota(q)
		if err != nil {
			t.Fatal(err)
		}
		h := write(headers.Draft, admitted(headers.State{
			Quota:      quota,
			Remaining:  v.Int64(1, limit),
			ResetAfter: time.Duration(v.Int64(0, int64(span))),
		}))
		limits, err := readLimits(h["Ratelimit"])
		if err != nil || len(limits) != 1 {
			t.Fatal(h, err)
		}
		// One request each t/r seconds; the rate makes one each span/limit.
		if l := limits[0]; l.t*int64(time.Second)*limit < l.r*int64(span) {
			t.Fatalf("r=%d;t=%d invites more than %d per %v", l.r, l.t, limit, span)
		}
	})
}

// TestOutsideFields makes sure that Write leaves the fields of other handlers alone.
func TestOutsideFields(t *testing.T) {
	draw.Check(t, func(t *testing.T, v *draw.Values) {
		d, _, resp := drawResponse(t, v)
		h := http.Header{"Content-Type": {"text/plain"}, "Vary": {"Origin", "Accept"}, "Cache-Control": {"max-age=60"}}
		want := dump(h)
		d.Write(h, resp)
		for key := range write(d, resp) {
			delete(h, key)
		}
		if got := dump(h); got != want {
			t.Fatalf("got\n%swant\n%s", got, want)
		}
	})
}
