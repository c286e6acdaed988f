package headers

import (
	"net/http"
	"strconv"
	"unicode/utf8"
)

// SetProblem prepares h for a body of [QuotaExceeded] or [Problem]: its
// Content-Type, with nosniff, and Cache-Control: no-store, which overwrites
// what an outer handler set, since a 429 must not be stored (RFC 6585 section
// 4). Expires, Etag, Last-Modified and Content-Length spoke of another body and
// are removed. h must not be nil.
func SetProblem(h http.Header) {
	if len(h) > 0 { // often the first to set any
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

// QuotaExceeded returns the body of a 429 in application/problem+json (RFC
// 9457), of the type quota-exceeded that the draft defines in section 5.1. The
// names are those of the policies that denied, not escaped; without any the
// body has no violated-policies. It contains nothing else that varies.
func QuotaExceeded(policies ...string) []byte {
	return violated(`{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",`+
		`"title":"Quota Exceeded","status":429`, policies)
}

// ReducedCapacity is QuotaExceeded for a 503, of the type
// temporary-reduced-capacity: there is too little for all, whoever asks.
func ReducedCapacity(policies ...string) []byte {
	return violated(`{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",`+
		`"title":"Temporary Reduced Capacity","status":503`, policies)
}

// AbnormalUsage is QuotaExceeded of the type abnormal-usage-detected: somebody
// has decided that this client is denied, whatever is left of its quota.
func AbnormalUsage(policies ...string) []byte {
	return violated(`{"type":"https://iana.org/assignments/http-problem-types#abnormal-usage-detected",`+
		`"title":"Abnormal Usage Detected","status":429`, policies)
}

func violated(head string, policies []string) []byte {
	size := len(head) + len(`,"violated-policies":[]}`)
	for _, name := range policies {
		size += len(name) + len(`"",`)
	}
	body := append(make([]byte, 0, size), head...)
	for i, name := range policies {
		if i == 0 {
			body = append(body, `,"violated-policies":[`...)
		} else {
			body = append(body, ',')
		}
		body = appendJSON(body, name)
	}
	if len(policies) > 0 {
		body = append(body, ']')
	}
	return append(body, '}')
}

// Problem returns the body of an answer that its status says all about, such as
// 401, 400, 500 or 503, in application/problem+json: type about:blank and the
// status text as its title (RFC 9457 section 4.2.1), which is left out if there
// is none. It has no place for an error: clients do not see those.
func Problem(status int) []byte {
	body := append(make([]byte, 0, 96), `{"type":"about:blank"`...)
	if title := http.StatusText(status); title != "" {
		body = append(body, `,"title":`...)
		body = appendJSON(body, title)
	}
	body = append(body, `,"status":`...)
	body = strconv.AppendInt(body, int64(status), 10)
	return append(body, '}')
}

// appendJSON appends s as a string of JSON (RFC 8259 section 7). Bytes that are
// not UTF-8 become U+FFFD.
func appendJSON(buf []byte, s string) []byte {
	const hex = "0123456789abcdef"
	buf = append(buf, '"')
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
	return append(buf, '"')
}
