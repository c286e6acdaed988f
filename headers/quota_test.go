package headers_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/headers"
)

func TestQuota(t *testing.T) {
	const day = 24 * time.Hour
	tests := []struct {
		config headers.QuotaConfig
		want   string
	}{
		// Windows: q is the requests, w the window, rounded up.
		{headers.QuotaConfig{Name: "a", Limit: 100, Requests: 100, Window: time.Minute}, `"a";q=100;w=60`},
		{headers.QuotaConfig{Name: "a", Limit: 5, Requests: 5, Window: 1500 * ms}, `"a";q=5;w=2`},
		{headers.QuotaConfig{Name: "a", Limit: 10, Requests: 10, Window: 100 * ms}, `"a";q=10;w=1`},
		{headers.QuotaConfig{Name: "a", Limit: 7, Requests: 7, Window: 1}, `"a";q=7;w=1`},
		{headers.QuotaConfig{Name: "a", Limit: 1e9, Requests: 1e9, Window: 400 * day}, `"a";q=1000000000;w=34560000`},
		{headers.QuotaConfig{Name: "a", Limit: 9, Requests: 9, Window: 31 * day, Calendar: true}, `"a";q=9`},
		// Buckets: w is the time in which the rate refills the burst.
		{bucketOf(10, 60, time.Minute), `"a";q=10;w=10`},
		{bucketOf(10, 3, time.Second), `"a";q=10;w=4`},
		{bucketOf(500, 5000, time.Second), `"a";q=500;w=1`},
		{bucketOf(3, 3, time.Second+1), `"a";q=3;w=2`},
		{bucketOf(120, 60, time.Minute), `"a";q=120;w=120`},
		// 1e6 units at 1 in 365 days: the product does not fit into 64 bits.
		{bucketOf(1e6, 1, 365*day), `"a";q=1000000;w=31536000000000`},
		{bucketOf(1e9, 1, 407*day), `"a";q=1000000000;w=999999999999999`},
		{bucketOf(999_999_999_999_999, 1, math.MaxInt64), `"a";q=999999999999999;w=999999999999999`},
		// 2^64 s, 2^64 ns, and 2^64 ns by rounding up. They wrap to 0 if the code
		// ignores a high word.
		{bucketOf(1<<28*1953125, 1, 1<<45), `"a";q=524288000000000;w=999999999999999`},
		{bucketOf(1<<34, 1, 1<<30), `"a";q=17179869184;w=18446744074`},
		{bucketOf(145295143558111, 2, 253921), `"a";q=145295143558111;w=18446744074`},
		{bucketOf(1e14, math.MaxInt64, time.Second), `"a";q=100000000000000;w=1`},
		// A quota of nothing needs no rate, and sends the window that it has.
		{headers.QuotaConfig{Name: "a"}, `"a";q=0`},
		{headers.QuotaConfig{Name: "a", Window: 1}, `"a";q=0;w=1`},
		{headers.QuotaConfig{Name: "a", Continuous: true, Requests: 3, Window: time.Minute}, `"a";q=0;w=60`},
		// Units.
		{headers.QuotaConfig{Name: "a", Limit: 10, Unit: "concurrent-requests"}, `"a";q=10;qu="concurrent-requests"`},
		{headers.QuotaConfig{Name: "a", Limit: 1, Requests: 1, Window: time.Second, Unit: "requests"}, `"a";q=1;w=1`},
		{headers.QuotaConfig{Name: "a", Limit: 1, Requests: 1, Window: time.Second, Unit: "content-bytes"},
			`"a";q=1;qu="content-bytes";w=1`},
		{headers.QuotaConfig{Name: "a", Limit: 1, Requests: 1, Window: time.Second, Unit: `"\`},
			`"a";q=1;qu="\"\\";w=1`},
		// Names.
		{headers.QuotaConfig{Name: ` ~"\`}, `" ~\"\\";q=0`},
		{headers.QuotaConfig{Name: strings.Repeat("n", 64)}, `"` + strings.Repeat("n", 64) + `";q=0`},
	}
	for _, tt := range tests {
		q, err := headers.NewQuota(tt.config)
		if err != nil {
			t.Errorf("%+v: %v", tt.config, err)
			continue
		}
		if got := policyOf(q); got != tt.want {
			t.Errorf("%+v: got %s, want %s", tt.config, got, tt.want)
		}
		if items, err := readPolicies([]string{policyOf(q)}); err != nil || len(items) != 1 || items[0].name != tt.config.Name {
			t.Errorf("%+v: reads back as %+v, %v", tt.config, items, err)
		}
	}
}

func bucketOf(limit, requests int64, window time.Duration) headers.QuotaConfig {
	return headers.QuotaConfig{Name: "a", Limit: limit, Requests: requests, Window: window, Continuous: true}
}

func TestQuotaMisconfigurations(t *testing.T) {
	rate := func(name string) headers.QuotaConfig {
		return headers.QuotaConfig{Name: name, Limit: 1, Requests: 1, Window: time.Second}
	}
	tests := []struct {
		config headers.QuotaConfig
		want   string
	}{
		{rate("naïve"), `headers: quota "naïve": bad name: want 1 to 64 characters of 0x20 to 0x7E`},
		{rate("a\tb"), `headers: quota "a\tb": bad name: want 1 to 64 characters of 0x20 to 0x7E`},
		{rate(""), `headers: quota "": bad name: want 1 to 64 characters of 0x20 to 0x7E`},
		{rate("a\x1f"), `headers: quota "a\x1f": bad name: want 1 to 64 characters of 0x20 to 0x7E`},
		{rate("a\x7f"), `headers: quota "a\x7f": bad name: want 1 to 64 characters of 0x20 to 0x7E`},
		{rate(strings.Repeat("n", 65)),
			`headers: quota "` + strings.Repeat("n", 65) + `": bad name: want 1 to 64 characters of 0x20 to 0x7E`},
		{headers.QuotaConfig{Name: "a", Limit: -1},
			`headers: quota "a": bad limit "-1": want 0 to 999999999999999`},
		{bucketOf(1e15, 1, 1),
			`headers: quota "a": bad limit "1000000000000000": want 0 to 999999999999999`},
		{headers.QuotaConfig{Name: "a", Limit: 5, Requests: 5},
			`headers: quota "a": bad rate "5/0s": want positive Requests and a positive Window`},
		{headers.QuotaConfig{Name: "a", Limit: 5, Window: time.Second, Continuous: true},
			`headers: quota "a": bad rate "0/1s": want positive Requests and a positive Window`},
		{headers.QuotaConfig{Name: "a", Requests: -1},
			`headers: quota "a": bad rate "-1/0s": want positive Requests and a positive Window`},
		{headers.QuotaConfig{Name: "a", Limit: 5, Requests: 10, Window: time.Second},
			`headers: quota "a": a window's limit "5" differs from its requests "10": make them equal`},
		{headers.QuotaConfig{Name: "a", Limit: 5, Window: time.Second, Unit: "concurrent-requests"},
			`headers: quota "a": concurrent requests have no rate, got "0/1s": leave out Requests and Window`},
		// All at once.
		{headers.QuotaConfig{Limit: -1, Requests: 2, Window: -1, Unit: "ü"},
			`headers: quota "": bad name: want 1 to 64 characters of 0x20 to 0x7E` + "\n" +
				`headers: quota "": bad unit "ü": want 1 to 64 characters of 0x20 to 0x7E` + "\n" +
				`headers: quota "": bad limit "-1": want 0 to 999999999999999` + "\n" +
				`headers: quota "": bad rate "2/-1ns": want positive Requests and a positive Window`},
	}
	for _, tt := range tests {
		q, err := headers.NewQuota(tt.config)
		if err == nil || err.Error() != tt.want || q != nil {
			t.Errorf("%+v: got %v, %v\nwant %s", tt.config, q, err, tt.want)
		}
	}
}

// TestQuotaMissing makes sure that Write leaves out a nil or zero Quota, rather than
// send an item without a name.
func TestQuotaMissing(t *testing.T) {
	var zero headers.Quota
	var none *headers.Quota
	if got := policyOf(&zero) + policyOf(none); got != "" {
		t.Errorf("got %q, want nothing", got)
	}
	for _, isDenied := range []bool{false, true} {
		resp := headers.Response{
			Quotas: []*headers.Quota{&zero, none},
			States: []headers.State{
				{Quota: &zero, Denied: true, RetryAfter: headers.Never}, {Denied: true, RetryAfter: headers.Never},
			},
			Denied: isDenied,
		}
		want := ""
		if isDenied {
			want = "Retry-After: 1\n"
		}
		if got := dump(write(headers.Draft|headers.SeparateFields|headers.XRateLimit, resp)); got != want {
			t.Errorf("denied %v: got\n%swant\n%s", isDenied, got, want)
		}
	}
	for _, missing := range []*headers.Quota{&zero, none} {
		if h := write(0, headers.Response{Quotas: []*headers.Quota{missing}}); len(h) > 0 {
			t.Errorf("got %v, want nothing", h)
		}
	}
	q := bucket(t, "a", 1, time.Second)
	resp := headers.Response{Quotas: []*headers.Quota{nil, q, &zero}}
	if got, want := dump(write(0, resp)), "Ratelimit-Policy: \"a\";q=1;w=1\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
