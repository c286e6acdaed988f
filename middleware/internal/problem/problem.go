// Package problem makes the body of a refusal, application/problem+json of RFC
// 9457, and the header fields that belong to it.
package problem

import (
	"net/http"
	"slices"
	"strconv"
)

// SetHeader prepares h for a [Body]: it sets Content-Type,
// X-Content-Type-Options: nosniff and Cache-Control: no-store, and removes
// Expires, Etag, Last-Modified and Content-Length.
func SetHeader(h http.Header) {
	if len(h) > 0 { // h is often empty, and four deletions cost more than this test
		delete(h, "Expires")
		delete(h, "Etag")
		delete(h, "Last-Modified")
		delete(h, "Content-Length")
	}
	values := [...]string{"application/problem+json", "no-store", "nosniff"}
	lines := values[:] // one allocation for the three; each is cut so that an append copies it
	h["Content-Type"] = lines[0:1:1]
	h["Cache-Control"] = lines[1:2:2]
	h["X-Content-Type-Options"] = lines[2:3:3]
}

// titles are those of the problem types.
var titles = map[string]string{
	"quota-exceeded":             "Quota Exceeded",
	"temporary-reduced-capacity": "Temporary Reduced Capacity",
	"abnormal-usage-detected":    "Abnormal Usage Detected",
	"no-requests-allowed":        "No Requests Allowed",
}

// Body returns the body of a response with the given status. problemType is a
// type of draft-ietf-httpapi-ratelimit-headers, section 5, or empty:
//
//	quota-exceeded              429  the client has used its quota
//	temporary-reduced-capacity  503  the service has too little capacity for all clients
//	abnormal-usage-detected     429  an operator or a rule denies this client; 403 if the ban has no end
//	no-requests-allowed         403  the limit is Nobody; this type is not of the draft
//	(empty)                     any  the status is enough
//
// policies are the names of the policies that denied, as algorithms.ValidatePolicy admits them.
func Body(status int, problemType string, policies ...string) []byte {
	place, title := "https://iana.org/assignments/http-problem-types#", titles[problemType]
	switch problemType {
	case "":
		place, title = "about:blank", http.StatusText(status)
	case "no-requests-allowed":
		place = "https://github.com/penstock-go/penstock/blob/main/RECIPES.md#"
	}
	body := append(make([]byte, 0, 256), `{"type":"`...) // nearly all bodies are shorter
	body = append(body, place...)
	body = append(body, problemType...)
	if title != "" {
		body = append(body, `","title":"`...)
		body = append(body, title...)
	}
	body = append(body, `","status":`...)
	body = strconv.AppendInt(body, int64(status), 10)
	for i, name := range policies { // no name and no title needs an escape
		if i == 0 {
			body = append(body, `,"violated-policies":["`...)
		} else {
			body = append(body, `,"`...)
		}
		body = append(body, name...)
		body = append(body, '"')
	}
	if len(policies) > 0 {
		body = append(body, ']')
	}
	return append(body, '}')
}

// WithDetail returns a copy of a [Body] that ends with an explanation, which needs no
// escape.
func WithDetail(body []byte, detail string) []byte {
	return slices.Concat(body[:len(body)-1], []byte(`,"detail":"`), []byte(detail), []byte(`"}`))
}
