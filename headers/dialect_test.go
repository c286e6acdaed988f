package headers_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/headers"
)

func TestParseDialect(t *testing.T) {
	const all = headers.Draft | headers.Triple | headers.X
	for in, want := range map[string]headers.Dialect{
		"draft": headers.Draft, "triple": headers.Triple, "x": headers.X,
		"draft,triple,x": all, "x, triple ,draft": all, "draft,draft": headers.Draft,
	} {
		if got, err := headers.ParseDialect(in); err != nil || got != want {
			t.Errorf("%q: got %v, %v, want %v", in, got, err, want)
		}
	}
	const rest = ": want draft, triple or x"
	for in, want := range map[string]string{
		"":            `headers: unknown dialect ""` + rest,
		"Draft":       `headers: unknown dialect "Draft"` + rest,
		"draft,":      `headers: unknown dialect ""` + rest,
		"x;triple":    `headers: unknown dialect "x;triple"` + rest,
		"a,draft,b\n": `headers: unknown dialect "a"` + rest + "\n" + `headers: unknown dialect "b\n"` + rest,
	} {
		if got, err := headers.ParseDialect(in); err == nil || err.Error() != want || got != 0 {
			t.Errorf("%q: got %v, %v, want %s", in, got, err, want)
		}
	}
}

func TestDialectString(t *testing.T) {
	for d, want := range map[headers.Dialect]string{
		0: "draft,triple", headers.Draft: "draft", headers.X | headers.Triple: "triple,x",
		headers.X | 0x40: "x,0x40", 0x80: "0x80",
	} {
		if got := d.String(); got != want {
			t.Errorf("%d: got %q, want %q", uint8(d), got, want)
		}
	}
}

// TestDialects walks through all values: the valid ones survive their text, and
// ExposeHeaders has just the fields that Write may set.
func TestDialects(t *testing.T) {
	q := window(t, "a", 10, time.Minute)
	resp := denied(headers.State{Quota: q, Denied: true, RetryAfter: time.Second})
	for i := range 256 {
		d := headers.Dialect(i)
		err := d.Validate()
		if valid := i < 8; valid != (err == nil) {
			t.Errorf("%d: got %v", i, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "headers: unknown bits in dialect \"") {
			t.Errorf("%d: got %v", i, err)
		}
		if parsed, err := headers.ParseDialect(d.String()); i > 0 && i < 8 && (err != nil || parsed != d) {
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
