package headers_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/headers"
)

func TestQuotaExceeded(t *testing.T) {
	const head = `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","status":429`
	tests := []struct {
		policies []string
		want     string
	}{
		{[]string{"default"}, head + `,"violated-policies":["default"]}`},
		{[]string{"peruser", "hourly"}, head + `,"violated-policies":["peruser","hourly"]}`},
		{nil, head + `}`},
		{[]string{`per "user" \ x`}, head + `,"violated-policies":["per \"user\" \\ x"]}`},
		{[]string{"a\n\x00\x7fü\u2028"}, head + `,"violated-policies":["a\u000a\u0000` + "\x7fü\u2028" + `"]}`},
		{[]string{"a\xff"}, head + `,"violated-policies":["a` + "\ufffd" + `"]}`},
	}
	for _, tt := range tests {
		if got := string(headers.Problem(http.StatusTooManyRequests, "quota-exceeded", tt.policies...)); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
	if got := len(headers.Problem(http.StatusTooManyRequests, "quota-exceeded", "peruser")); got != 143 {
		t.Errorf("got %d bytes, want 143", got)
	}
}

// TestProblemTypes has the types of the draft, byte for byte, and other types.
func TestProblemTypes(t *testing.T) {
	const registry = `{"type":"https://iana.org/assignments/http-problem-types#`
	tests := []struct {
		status      int
		problemType string
		policies    []string
		want        string
	}{
		{429, "quota-exceeded", nil, registry + `quota-exceeded","title":"Quota Exceeded","status":429}`},
		{429, "abnormal-usage-detected", []string{"a"},
			registry + `abnormal-usage-detected","title":"Abnormal Usage Detected","status":429,"violated-policies":["a"]}`},
		{429, "abnormal-usage-detected", nil,
			registry + `abnormal-usage-detected","title":"Abnormal Usage Detected","status":429}`},
		{503, "temporary-reduced-capacity", []string{"a", "b"},
			registry + `temporary-reduced-capacity","title":"Temporary Reduced Capacity","status":503,"violated-policies":["a","b"]}`},
		{503, "temporary-reduced-capacity", nil,
			registry + `temporary-reduced-capacity","title":"Temporary Reduced Capacity","status":503}`},
		// The status is the caller's, and another type has no title.
		{503, "quota-exceeded", nil, registry + `quota-exceeded","title":"Quota Exceeded","status":503}`},
		{400, "date", nil, registry + `date","status":400}`},
		{400, "a\"\n\xff", []string{"p"}, registry + `a\"\u000a` + "\ufffd" + `","status":400,"violated-policies":["p"]}`},
		// The status is enough.
		{429, "", nil, `{"type":"about:blank","title":"Too Many Requests","status":429}`},
		{599, "", []string{"a"}, `{"type":"about:blank","status":599,"violated-policies":["a"]}`},
	}
	for _, tt := range tests {
		got := headers.Problem(tt.status, tt.problemType, tt.policies...)
		if string(got) != tt.want || !json.Valid(got) {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
	// Each call returns a slice of its own.
	first := headers.Problem(http.StatusTooManyRequests, "")
	_ = append(first[:0], "overwritten"...)
	if got := string(headers.Problem(http.StatusTooManyRequests, "")); got != tests[8].want {
		t.Errorf("got %s, want %s", got, tests[8].want)
	}
}

func TestProblem(t *testing.T) {
	for status, want := range map[int]string{
		400: `{"type":"about:blank","title":"Bad Request","status":400}`,
		401: `{"type":"about:blank","title":"Unauthorized","status":401}`,
		500: `{"type":"about:blank","title":"Internal Server Error","status":500}`,
		503: `{"type":"about:blank","title":"Service Unavailable","status":503}`,
		418: `{"type":"about:blank","title":"I'm a teapot","status":418}`,
		599: `{"type":"about:blank","status":599}`,
	} {
		if got := string(headers.Problem(status, "")); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for status := 100; status < 600; status++ {
		var body struct {
			Type, Title string
			Status      int
		}
		if err := json.Unmarshal(headers.Problem(status, ""), &body); err != nil {
			t.Fatal(err)
		}
		if body.Type != "about:blank" || body.Title != http.StatusText(status) || body.Status != status {
			t.Errorf("%d: got %+v", status, body)
		}
	}
}

// violated reads a body of quota-exceeded with the decoder of the standard library.
func violated(body []byte) ([]string, error) {
	var problem struct {
		Type     string   `json:"type"`
		Title    string   `json:"title"`
		Status   int      `json:"status"`
		Policies []string `json:"violated-policies"`
	}
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&problem)
	return problem.Policies, err
}

// TestSetProblem makes sure that no field of an outer handler makes the answer
// cacheable or describes another body.
func TestSetProblem(t *testing.T) {
	h := http.Header{}
	for key, value := range map[string]string{
		"Cache-Control": "max-age=3600, public", "Content-Type": "text/html", "Content-Length": "12",
		"Expires": "Sat, 21 Nov 2026 12:00:30 GMT", "ETag": `"x"`, "Last-Modified": "Sat, 21 Nov 2026 12:00:30 GMT",
		"Vary": "Origin", "Access-Control-Allow-Origin": "*",
	} {
		h.Set(key, value)
	}
	h.Add("Cache-Control", "immutable")
	headers.SetProblem(h)
	const want = "Access-Control-Allow-Origin: *\nCache-Control: no-store\nContent-Type: application/problem+json\n" +
		"Vary: Origin\nX-Content-Type-Options: nosniff\n"
	if got := dump(h); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	for _, key := range []string{"Content-Length", "Expires", "Etag", "Last-Modified"} {
		h := http.Header{key: {"12"}}
		if headers.SetProblem(h); h.Get(key) != "" {
			t.Errorf("%s alone stays", key)
		}
	}
}

func TestQuotaExceededReadsBack(t *testing.T) {
	for _, names := range [][]string{{"a"}, {"a", "b", "c"}, {"\"", "\\", "\x1f", "\t", "</script>", "日本"}} {
		got, err := violated(headers.Problem(http.StatusTooManyRequests, "quota-exceeded", names...))
		if err != nil || !slices.Equal(got, names) {
			t.Errorf("got %q, %v, want %q", got, err, names)
		}
	}
}
