package headers_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/internal/draw"
)

// FuzzRead makes sure that no header makes Read panic or return impossible numbers.
// It accepts what an independent reader of the draft accepts.
func FuzzRead(f *testing.F) {
	for _, tt := range itemVectors {
		f.Add(uint16(429), tt.in, `"a";q=1`, "", "")
	}
	for _, tt := range policyVectors {
		f.Add(uint16(200), `"a";r=1`, tt.in, "", "")
	}
	for _, tt := range waitVectors {
		f.Add(uint16(503), "", "", strings.Join(tt.lines, "\n"), "1795262460.5")
	}
	for _, date := range dates {
		f.Add(uint16(429), "0", "", date, date)
	}
	f.Fuzz(func(t *testing.T, status uint16, limits, policies, wait, reset string) {
		h := http.Header{
			"Ratelimit": strings.Split(limits, "\n"), "Ratelimit-Policy": strings.Split(policies, "\n"),
			"Retry-After": strings.Split(wait, "\n"), "X-Ratelimit-Remaining": {limits}, "X-Ratelimit-Reset": {reset},
			"Retry-After-Ms": {reset}, "Age": {policies}, "Date": {wait},
		}
		checkFields(t, headers.Read(int(status), h, at))
		items, err := readLimits(h["Ratelimit"])
		if err != nil || len(limits) > 8000 {
			return
		}
		got := headers.Read(200, http.Header{"Ratelimit": h["Ratelimit"]}, at)
		if len(got.Malformed) > 0 || (len(got.Limits) == 0) != (len(items) == 0) {
			t.Errorf("%q: got %+v, want %+v", limits, got, items)
		}
	})
}

// TestReadAnyDate: a date in any form and zone, or cut off, is read exactly or not at all.
func TestReadAnyDate(t *testing.T) {
	forms := []string{
		"Mon, 02 Jan 2006 15:04:05 -0700", "Monday, 02-Jan-06 15:04:05 -0700", "2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05.000Z07:00",
		"Mon Jan 02 2006 15:04:05 GMT-0700", "Mon Jan 02 2006 15:04:05 GMT-0700 (Somewhere)",
	}
	draw.Check(t, func(t *testing.T, v *draw.Values) {
		want := time.Duration(v.Int(1, 40*365*86_400)) * time.Second
		zone := time.FixedZone("", 60*v.Int(-14*60, 14*60))
		text := at.Add(want).In(zone).Format(draw.Of(v, forms...))
		for _, h := range []http.Header{{"Retry-After": {text}}, {"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {text}}} {
			if f := headers.Read(http.StatusTooManyRequests, h, at); f.From == "" || f.Wait != want {
				t.Fatalf("%q: got %v from %q, want %v", text, f.Wait, f.From, want)
			}
		}
		end := strings.LastIndexAny(text, "-+Z")
		cut := text[:v.Int(0, end)]
		if f := headers.Read(http.StatusTooManyRequests, http.Header{"Retry-After": {cut}}, at); f.From != "" && strings.ContainsAny(cut, ":") {
			t.Fatalf("%q: got %v", cut, f.Wait)
		}
	})
}

func checkFields(t *testing.T, f headers.Fields) {
	t.Helper()
	if f.Wait < 0 || f.From == "" && f.Wait != 0 {
		t.Errorf("got the wait %v from %q", f.Wait, f.From)
	}
	for _, l := range f.Limits {
		if l.Remaining < -1 || l.Within < -1 || l.Quota < -1 || l.Window < 0 || l.Pace() < 0 {
			t.Errorf("got %+v", l)
		}
	}
}

// TestReadBack: Read and an independent reader read the same of what Write writes.
func TestReadBack(t *testing.T) {
	draw.Check(t, func(t *testing.T, v *draw.Values) {
		_, _, resp := drawResponse(t, v)
		h := write(headers.Draft, resp)
		items, err := readLimits(h["Ratelimit"])
		policies, alsoErr := readPolicies(h["Ratelimit-Policy"])
		if err != nil || alsoErr != nil {
			t.Fatal(err, alsoErr)
		}
		f := headers.Read(429, h, at)
		if len(f.Malformed) > 0 {
			t.Fatalf("%q: got %+v", h, f)
		}
		read := map[limitItem]bool{}
		quotas := map[policyItem]bool{}
		for _, l := range f.Limits {
			// Never stands for more than 292 years.
			within := int64(l.Within.Seconds())
			if l.Within < 0 {
				within = absent
			}
			read[limitItem{l.Name, l.Remaining, within}] = true
			quotas[policyItem{name: l.Name, q: l.Quota}] = true
		}
		seen := map[string]bool{}
		for _, item := range items {
			if twice := seen[item.name]; !twice && item.t < 9e9 && len(items) == 1 && !read[item] {
				t.Fatalf("%q: got %+v, want %+v", h, f, item)
			}
			seen[item.name] = true
		}
		if len(policies) == 1 && !quotas[policyItem{name: policies[0].name, q: policies[0].q}] {
			t.Fatalf("%q: got %+v, want %+v", h, f, policies)
		}
	})
}
