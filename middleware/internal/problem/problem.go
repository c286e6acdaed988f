// Package problem makes the body of a refusal, application/problem+json of RFC
// 9457, and the header fields that belong to it.
package problem

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
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
// type of draft-ietf-httpapi-ratelimit-headers, section 5, or no-requests-allowed, which is ours, or
// empty if the status is enough. policies are the names of the policies that denied, as
// algorithms.ValidatePolicy admits them.
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
	before := `,"violated-policies":["`
	for _, name := range policies { // no name and no title needs an escape
		body = append(body, before...)
		body = append(body, name...)
		before = `","`
	}
	if len(policies) > 0 {
		body = append(body, `"]`...)
	}
	return append(body, '}')
}

// WithDetail returns a copy of a [Body] that ends with an explanation, which needs no
// escape.
func WithDetail(body []byte, detail string) []byte {
	return slices.Concat(body[:len(body)-1], []byte(`,"detail":"`), []byte(detail), []byte(`"}`))
}

// A Kind is why policies deny a request.
type Kind uint8

const (
	None     Kind = iota // no policy does: the status is enough
	Exceeded             // the client has used its quota
	Hopeless             // the request costs more than the limit allows at once
	Banned               // an operator or a rule bans the client for a time
	Barred               // an operator bans the client, without an end
	Guessed              // the address sent unknown API keys
	Closed               // the limit is Nobody
	Capacity             // the service has too little capacity for all clients
	kinds
)

// texts has what clients read of each kind. A detail needs no escape.
var texts = [kinds]struct {
	status              int
	problemType, detail string
}{
	Exceeded: {429, "quota-exceeded", ""},
	Hopeless: {429, "quota-exceeded", "The request costs more than the limit allows at once. No wait helps."},
	Banned:   {429, "abnormal-usage-detected", ""},
	Barred:   {403, "abnormal-usage-detected", ""},
	Guessed: {
		429, "abnormal-usage-detected",
		"This address sent unknown API keys, so keys that are new from it are checked slowly. Send the request again after Retry-After.",
	},
	Closed:   {403, "no-requests-allowed", ""},
	Capacity: {503, "temporary-reduced-capacity", ""},
}

// A Refusal says why a request is refused.
type Refusal struct {
	Status   int
	Kind     Kind
	Policies []string // that denied, and may be named
}

// Title returns the title of the refusal, for clients that read no body.
func (r *Refusal) Title() string {
	if r.Kind == None {
		return http.StatusText(r.Status)
	}
	return titles[texts[r.Kind].problemType]
}

// Answers has the ready bodies of a configuration, and its challenge. The zero value has
// none. Many goroutines may read it after the last Add.
type Answers struct {
	challenges []string
	missing    []byte                   // body of 401
	ready      map[string][kinds][]byte // by the one policy that denies
}

// Add makes the bodies of refusals by one policy, whose key has these challenges.
func (a *Answers) Add(policy string, challenges []string) {
	var ready [kinds][]byte
	for _, k := range []Kind{Exceeded, Banned, Barred, Closed} {
		ready[k] = Body(texts[k].status, texts[k].problemType, policy)
	}
	if a.ready == nil {
		a.ready = make(map[string][kinds][]byte)
	}
	a.ready[policy] = ready
	for _, challenge := range challenges {
		if !slices.Contains(a.challenges, challenge) {
			a.challenges = append(a.challenges, challenge)
		}
	}
	a.missing = Body(http.StatusUnauthorized, "")
	if len(a.challenges) > 0 {
		a.missing = WithDetail(a.missing, "The request needs a valid key in "+headersOf(a.challenges)+".")
	}
}

// Challenge returns the WWW-Authenticate of a 401, which must have one (RFC 9110, section
// 15.5.2). If the policies name none, another middleware verifies identities, most likely
// by tokens.
func (a *Answers) Challenge() string {
	if len(a.challenges) == 0 {
		return "Bearer"
	}
	return strings.Join(a.challenges, ", ")
}

// headersOf names the header fields of challenges.
func headersOf(challenges []string) string {
	fields := make([]string, len(challenges))
	for i, challenge := range challenges {
		if _, field, named := strings.Cut(challenge, "header="); named {
			fields[i] = strings.Trim(field, `"`)
		} else {
			fields[i] = "Authorization: " + challenge
		}
	}
	return strings.Join(fields, " or ")
}

// Body returns the body of an answer. Usually one policy denies, and its body is ready. err
// is the error of a 400. It is no field of r, because then r and its names would move to the heap.
func (a *Answers) Body(r *Refusal, err error) []byte {
	switch {
	case r.Status == http.StatusUnauthorized && a.missing != nil:
		return a.missing
	case r.Status == http.StatusBadRequest:
		return malformed(err)
	case r.Kind == None:
		return Body(r.Status, "")
	}
	if len(r.Policies) == 1 {
		if ready := a.ready[r.Policies[0]]; ready[r.Kind] != nil {
			return ready[r.Kind]
		}
	}
	body := Body(r.Status, texts[r.Kind].problemType, r.Policies...)
	if detail := texts[r.Kind].detail; detail != "" {
		return WithDetail(body, detail)
	}
	return body
}

// malformed returns the body of a 400. It says which identity is malformed, in the words of package keyfunc: a client
// must not read the text of a service's error.
func malformed(err error) []byte {
	body := Body(http.StatusBadRequest, "")
	var of interface{ ForClient() string }
	if errors.As(err, &of) {
		return WithDetail(body, of.ForClient())
	}
	return body
}
