package headers_test

import (
	"math"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/headers"
	"pgregory.net/rapid"
)

// drawSubject draws a quota of any kind and a State that need not make sense. The
// fields have to be well-formed and honest nevertheless.
func drawSubject(t *rapid.T) subject {
	c := headers.QuotaConfig{
		Name:       rapid.StringOfN(rapid.RuneFrom(printable), 1, 64, -1).Draw(t, "name"),
		Limit:      rapid.OneOf(rapid.Int64Range(0, 200), rapid.Int64Range(0, 999_999_999_999_999)).Draw(t, "limit"),
		Continuous: rapid.Bool().Draw(t, "continuous"),
		Unit:       rapid.SampledFrom([]string{"", "requests", "content-bytes", `a "b\`}).Draw(t, "unit"),
	}
	switch {
	case rapid.IntRange(0, 9).Draw(t, "kind") == 0:
		c.Unit = "concurrent-requests"
	case c.Continuous:
		c.Requests = rapid.OneOf(rapid.Int64Range(1, 200), rapid.Int64Min(1)).Draw(t, "requests")
		c.Window = drawWindow(t)
	default:
		c.Requests = c.Limit
		c.Window = drawWindow(t)
	}
	q, err := headers.NewQuota(c)
	if err != nil {
		t.Fatal(err)
	}
	return subject{c, headers.State{
		Quota:      q,
		Denied:     rapid.Bool().Draw(t, "denied"),
		Remaining:  rapid.OneOf(rapid.Int64Range(-1, 200), rapid.Int64Range(0, max(c.Limit, 1)), rapid.Int64()).Draw(t, "remaining"),
		RetryAfter: drawWait(t, "retryAfter"),
		ResetAfter: drawWait(t, "resetAfter"),
		UnitAfter:  drawWait(t, "unitAfter"),
	}}
}

var printable = func() []rune {
	var runes []rune
	for r := rune(0x20); r <= 0x7E; r++ {
		runes = append(runes, r)
	}
	return runes
}()

func drawWindow(t *rapid.T) time.Duration {
	return time.Duration(rapid.OneOf(
		rapid.Int64Range(1, int64(5*time.Second)), rapid.Int64Range(1, int64(400*24*time.Hour)), rapid.Int64Min(1),
	).Draw(t, "window"))
}

func drawWait(t *rapid.T, label string) time.Duration {
	return time.Duration(rapid.OneOf(
		rapid.Int64Range(0, int64(time.Minute)), rapid.Int64Range(0, int64(400*24*time.Hour)),
		rapid.SampledFrom([]int64{0, 1, int64(time.Second), math.MaxInt64, math.MaxInt64 - 1, -1}), rapid.Int64(),
	).Draw(t, label))
}

// drawResponse draws a response about some subjects, and a dialect.
func drawResponse(t *rapid.T) (headers.Dialect, []subject, headers.Response) {
	subjects := rapid.SliceOfN(rapid.Custom(drawSubject), 0, 5).Draw(t, "subjects")
	resp := headers.Response{
		Denied:     rapid.Bool().Draw(t, "isDenied"),
		RetryAfter: drawWait(t, "callRetryAfter"),
		Now:        time.Unix(rapid.Int64Range(0, 1<<40).Draw(t, "now"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")),
	}
	for _, s := range subjects {
		resp.Quotas = append(resp.Quotas, s.state.Quota)
		resp.States = append(resp.States, s.state)
	}
	return headers.Dialect(rapid.IntRange(0, 7).Draw(t, "dialect")), subjects, resp
}

// TestWriteReadsBack has W23, W26 and W27 for any arguments.
func TestWriteReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, subjects, resp := drawResponse(t)
		h := write(d, resp)
		if err := audit(d, subjects, resp, h); err != nil {
			t.Fatalf("%v\n%s", err, dump(h))
		}
	})
}

// TestSources makes sure that Write changes no argument, and that the lines of a
// second limiter do not change the lines of the first.
func TestSources(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, _, resp := drawResponse(t)
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
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 1000).Draw(t, "limit")
		span := time.Duration(rapid.Int64Range(1, 3600).Draw(t, "seconds")) * time.Second
		q := headers.QuotaConfig{Name: "a", Limit: limit, Requests: limit, Window: span}
		quota, err := headers.NewQuota(q)
		if err != nil {
			t.Fatal(err)
		}
		h := write(headers.Draft, admitted(headers.State{
			Quota:      quota,
			Remaining:  rapid.Int64Range(1, limit).Draw(t, "remaining"),
			ResetAfter: time.Duration(rapid.Int64Range(0, int64(span)).Draw(t, "reset")),
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
	rapid.Check(t, func(t *rapid.T) {
		d, _, resp := drawResponse(t)
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
