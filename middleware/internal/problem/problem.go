// Package problem makes the body of a refusal, application/problem+json of RFC
// 9457, and the header fields that belong to it.
package problem

import (
	"net/http"
	"slices"
	"strconv"
	"unicode/utf8"
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

// Body returns the body of a response with the given status. problemType is a
// type of draft-ietf-httpapi-ratelimit-headers, section 5, or empty:
//
//	quota-exceeded              429  the client has used its quota
//	temporary-reduced-capacity  503  the service has too little capacity for all clients
//	abnormal-usage-detected     429  an operator or a rule denies this client; 403 if the ban has no end
//	no-requests-allowed         403  the limit is Nobody; this type is not of the draft
//	(empty)                     any  the status is enough
//
// policies are the names of the policies that denied.
func Body(status int, problemType string, policies ...string) []byte {
	head := headOf(problemType)
	size := len(head) + len(`,"status":429,"violated-policies":[]}`)
	title := ""
	if problemType == "" {
		title = http.StatusText(status)
		size += len(`,"title":""`) + len(title)
	}
	for _, name := range policies {
		size += len(name) + len(`"",`)
	}
	body := append(make([]byte, 0, size), head...)
	if title != "" {
		body = append(body, `,"title":"`...)
		body = append(body, title...) // no status text needs an escape
		body = append(body, '"')
	}
	body = append(body, `,"status":`...)
	body = strconv.AppendInt(body, int64(status), 10)
	for i, name := range policies {
		if i == 0 {
			body = append(body, `,"violated-policies":["`...)
		} else {
			body = append(body, `,"`...)
		}
		body = appendEscaped(body, name)
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

// headOf returns the beginning of a body: the type, and the title of a type of
// the draft. These are constants, so that a denial allocates its body only.
func headOf(problemType string) string {
	const registry = `{"type":"https://iana.org/assignments/http-problem-types#`
	const own = `{"type":"https://github.com/penstock-go/penstock/blob/main/RECIPES.md#`
	switch problemType {
	case "quota-exceeded":
		return registry + `quota-exceeded","title":"Quota Exceeded"`
	case "temporary-reduced-capacity":
		return registry + `temporary-reduced-capacity","title":"Temporary Reduced Capacity"`
	case "abnormal-usage-detected":
		return registry + `abnormal-usage-detected","title":"Abnormal Usage Detected"`
	case "no-requests-allowed":
		return own + `no-requests-allowed","title":"No Requests Allowed"`
	case "":
		return `{"type":"about:blank"`
	default:
		return string(append(appendEscaped([]byte(registry), problemType), '"'))
	}
}

// appendEscaped appends s as the inside of a JSON string (RFC 8259 section 7).
// Bytes that are not UTF-8 become U+FFFD.
func appendEscaped(buf []byte, s string) []byte {
	const hex = "0123456789abcdef"
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			buf = append(buf, '\\', byte(r))
		case r < 0x20:
			buf = append(buf, '\\', 'u', '0', '0', hex[r>>4], hex[r&0xF])
		default:
			buf = utf8.AppendRune(buf, r)
		}
	}
	return buf
}
