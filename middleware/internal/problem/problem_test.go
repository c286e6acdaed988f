package problem_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/middleware/internal/problem"
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
	}
	for _, tt := range tests {
		if got := string(problem.Body(http.StatusTooManyRequests, "quota-exceeded", tt.policies...)); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
	if got := len(problem.Body(http.StatusTooManyRequests, "quota-exceeded", "peruser")); got != 143 {
		t.Errorf("got %d bytes, want 143", got)
	}
}

// TestProblemTypes has the types of the draft, byte for byte, and none.
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
		// The status is the caller's.
		{503, "quota-exceeded", nil, registry + `quota-exceeded","title":"Quota Exceeded","status":503}`},
		// The status is enough.
		{429, "", nil, `{"type":"about:blank","title":"Too Many Requests","status":429}`},
		{599, "", []string{"a"}, `{"type":"about:blank","status":599,"violated-policies":["a"]}`},
	}
	for _, tt := range tests {
		got := problem.Body(tt.status, tt.problemType, tt.policies...)
		if string(got) != tt.want || !json.Valid(got) {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
	// Each call returns a slice of its own.
	first := problem.Body(http.StatusTooManyRequests, "")
	_ = append(first[:0], "overwritten"...)
	if got := string(problem.Body(http.StatusTooManyRequests, "")); got != tests[6].want {
		t.Errorf("got %s, want %s", got, tests[6].want)
	}
}

func TestBody(t *testing.T) {
	for status, want := range map[int]string{
		400: `{"type":"about:blank","title":"Bad Request","status":400}`,
		401: `{"type":"about:blank","title":"Unauthorized","status":401}`,
		500: `{"type":"about:blank","title":"Internal Server Error","status":500}`,
		503: `{"type":"about:blank","title":"Service Unavailable","status":503}`,
		418: `{"type":"about:blank","title":"I'm a teapot","status":418}`,
		599: `{"type":"about:blank","status":599}`,
	} {
		if got := string(problem.Body(status, "")); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for status := 100; status < 600; status++ {
		var body struct {
			Type, Title string
			Status      int
		}
		if err := json.Unmarshal(problem.Body(status, ""), &body); err != nil {
			t.Fatal(err)
		}
		if body.Type != "about:blank" || body.Title != http.StatusText(status) || body.Status != status {
			t.Errorf("%d: got %+v", status, body)
		}
	}
}

// violated reads a body of quota-exceeded with the decoder of the standard library.
func violated(body []byte) ([]string, error) {
	var read struct {
		Type     string   `json:"type"`
		Title    string   `json:"title"`
		Status   int      `json:"status"`
		Policies []string `json:"violated-policies"`
	}
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&read)
	return read.Policies, err
}

// TestSetHeader makes sure that no field of an outer handler makes the answer
// cacheable or describes another body.
func TestSetHeader(t *testing.T) {
	h := http.Header{}
	for key, value := range map[string]string{
		"Cache-Control": "max-age=3600, public", "Content-Type": "text/html", "Content-Length": "12",
		"Expires": "Sat, 21 Nov 2026 12:00:30 GMT", "ETag": `"x"`, "Last-Modified": "Sat, 21 Nov 2026 12:00:30 GMT",
		"Vary": "Origin", "Access-Control-Allow-Origin": "*",
	} {
		h.Set(key, value)
	}
	h.Add("Cache-Control", "immutable")
	problem.SetHeader(h)
	const want = "Access-Control-Allow-Origin: *\nCache-Control: no-store\nContent-Type: application/problem+json\n" +
		"Vary: Origin\nX-Content-Type-Options: nosniff\n"
	if got := dump(h); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	for _, key := range []string{"Content-Length", "Expires", "Etag", "Last-Modified"} {
		h := http.Header{key: {"12"}}
		if problem.SetHeader(h); h.Get(key) != "" {
			t.Errorf("%s alone stays", key)
		}
	}
}

// dump returns h as an HTTP/1.1 server writes it, with bare newlines.
func dump(h http.Header) string {
	var b strings.Builder
	_ = h.Write(&b) // a Builder does not fail
	return strings.ReplaceAll(b.String(), "\r\n", "\n")
}

// TestSharedLines makes sure that the lines of one response do not run into each
// other, or into the next response, when a handler adds to one of them.
func TestSharedLines(t *testing.T) {
	fresh := func() http.Header {
		h := http.Header{}
		problem.SetHeader(h)
		return h
	}
	want := dump(fresh())
	for key := range fresh() {
		h := fresh()
		h.Add(key, "more")
		h[key] = h[key][:1]
		if got := dump(h); got != want {
			t.Errorf("after adding to %s: got\n%swant\n%s", key, got, want)
		}
	}
	if got := dump(fresh()); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestQuotaExceededReadsBack(t *testing.T) {
	for _, names := range [][]string{{"a"}, {"a", "b", "c"}} {
		got, err := violated(problem.Body(http.StatusTooManyRequests, "quota-exceeded", names...))
		if err != nil || !slices.Equal(got, names) {
			t.Errorf("got %q, %v, want %q", got, err, names)
		}
	}
}

// TestAllocations: a body needs its buffer, and SetHeader its slice.
func TestAllocations(t *testing.T) {
	h := http.Header{}
	for name, run := range map[string]func(){
		"quota-exceeded": func() { problem.Body(http.StatusTooManyRequests, "quota-exceeded", "peruser", "hourly") },
		"about:blank":    func() { problem.Body(http.StatusServiceUnavailable, "") },
		"SetHeader":      func() { problem.SetHeader(h) },
	} {
		if got := testing.AllocsPerRun(100, run); got != 1 {
			t.Errorf("%s: got %v allocations, want 1", name, got)
		}
	}
}
