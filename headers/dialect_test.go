package headers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/headers"
)

// A new dialect belongs into both, and into the Examples of ParseDialect and Validate.
const (
	all   = headers.Draft | headers.SeparateFields | headers.XRateLimit | headers.Milliseconds
	names = "draft, separate, x-ratelimit or milliseconds"
)

func TestParseDialect(t *testing.T) {
	for in, want := range map[string]headers.Dialect{
		"draft": headers.Draft, "separate": headers.SeparateFields, "x-ratelimit": headers.XRateLimit,
		"draft,separate,x-ratelimit,milliseconds": all, "x-ratelimit, separate ,draft, milliseconds": all,
	} {
		if got, err := headers.ParseDialect(in); err != nil || got != want {
			t.Errorf("%q: got %v, %v, want %v", in, got, err, want)
		}
	}
	const rest = ": want " + names
	for in, want := range map[string]string{
		"":               `headers: unknown dialect ""` + rest,
		"Draft":          `headers: unknown dialect "Draft"` + rest,
		"draft,":         `headers: unknown dialect ""` + rest,
		"draft;separate": `headers: unknown dialect "draft;separate"` + rest,
		"a,draft,b\n":    `headers: unknown dialect "a"` + rest + "\n" + `headers: unknown dialect "b\n"` + rest,
		// The names before this version's.
		"triple,x": `headers: unknown dialect "triple"` + rest + "\n" + `headers: unknown dialect "x"` + rest,
		// Each repetition, and the unknown names between.
		"draft, draft":      `headers: dialect "draft" is listed twice: list it once`,
		"separate,separate": `headers: dialect "separate" is listed twice: list it once`,
		"draft,all,x-ratelimit,draft,x-ratelimit": `headers: unknown dialect "all"` + rest + "\n" +
			`headers: dialect "draft" is listed twice: list it once` + "\n" +
			`headers: dialect "x-ratelimit" is listed twice: list it once`,
		// An error stays short.
		strings.Repeat("n", 1000): `headers: unknown dialect "` + strings.Repeat("n", 80) + `"` + rest,
	} {
		if got, err := headers.ParseDialect(in); err == nil || err.Error() != want || got != 0 {
			t.Errorf("%q: got %v, %v, want %s", in, got, err, want)
		}
	}
}

func TestDialectString(t *testing.T) {
	for d, want := range map[headers.Dialect]string{
		0: "draft,separate", headers.Draft: "draft", headers.XRateLimit | headers.SeparateFields: "separate,x-ratelimit",
		headers.XRateLimit | 0x40: "x-ratelimit,0x40", 0x80: "0x80", 0xC0: "0xc0",
	} {
		if got := d.String(); got != want {
			t.Errorf("%d: got %q, want %q", uint8(d), got, want)
		}
	}
}

// TestDialects walks through all values. The valid ones survive their text, Validate
// names the unknown bits of the others, and ExposeHeaders has exactly the fields
// that Write may set.
func TestDialects(t *testing.T) {
	if (all + 1).Validate() == nil {
		t.Fatalf("%v is valid: add the new dialect to all and names at the top of this file", all+1)
	}
	q := window(t, "a", 10, time.Minute)
	resp := denied(headers.State{Quota: q, Denied: true, RetryAfter: time.Second})
	for i := range 256 {
		d := headers.Dialect(i)
		err := d.Validate()
		if valid := d <= all; valid != (err == nil) {
			t.Errorf("%d: got %v", i, err)
		}
		if want := fmt.Sprintf("headers: dialect %q has unknown bits 0x%x: want %s, or a combination",
			d.String(), uint8(d&^all), names); err != nil && err.Error() != want {
			t.Errorf("%d: got %v, want %s", i, err, want)
		}
		if parsed, err := headers.ParseDialect(d.String()); i > 0 && d <= all && (err != nil || parsed != d) {
			t.Errorf("%v: got %v, %v", d, parsed, err)
		}
		var got []string
		for key := range write(d, resp) {
			got = append(got, strings.ToLower(key))
		}
		var want []string
		for _, name := range d.ExposeHeaders() {
			want = append(want, strings.ToLower(name))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%v: writes %q, exposes %q", d, got, want)
		}
	}
}
