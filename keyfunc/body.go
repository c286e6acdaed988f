package keyfunc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// maxBody is the longest body, in bytes, that JSONField and FormField read.
const maxBody = 64 << 10

// JSONField returns the Key <kind>=<value> of a field of a JSON object in the body. The kinds are those of [Custom].
// The value is a string or a number, in lower case and without spaces around it, because one account must have one
// spelling. Clients choose it, so put a policy by address beside it.
//
// JSONField reads up to 64 KiB, whatever the Content-Type, and restores the body. It finds the field in any case. A
// longer body, one that is no JSON object, and a field that comes twice are [ErrMalformed].
func JSONField(kind, field string) Key {
	return bodyKey("JSONField", kind, field, func(_ *http.Request, body []byte) (string, error) { return jsonField(body, field) })
}

// FormField is [JSONField] for a case-sensitive field of a form (application/x-www-form-urlencoded). Another
// Content-Type is ErrMalformed, so a route that takes both needs two Middlewares: see RECIPES.md.
func FormField(kind, field string) Key {
	return bodyKey("FormField", kind, field, func(r *http.Request, body []byte) (string, error) {
		if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/x-www-form-urlencoded" {
			return "", malformed("the body is no form")
		}
		form, err := url.ParseQuery(string(body))
		switch values := form[field]; {
		case err != nil:
			return "", malformed("the form is malformed")
		case len(values) > 1:
			return "", malformed("the field comes twice")
		case len(values) == 1:
			return values[0], nil
		}
		return "", nil
	})
}

func malformed(detail string) error { return fmt.Errorf("%w: %s", ErrMalformed, detail) }

func bodyKey(name, kind, field string, find func(r *http.Request, body []byte) (string, error)) Key {
	k := Custom(kind, func(r *http.Request) (string, error) {
		body, err := peekBody(r)
		if err != nil {
			return "", err
		}
		value, err := find(r, body)
		return strings.ToLower(strings.TrimSpace(value)), err
	})
	k.def.info.Folded, k.def.info.Unknown = k.def.info.Kinds, false // no account is looked up
	if field == "" {
		return newKey(nil, k.def.info, k.def.err, misconfigurationf("%s: the name of the field is empty", name))
	}
	return k
}

func peekBody(r *http.Request) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	if r.ContentLength > maxBody {
		return nil, malformed("the body is longer than 64 KiB")
	}
	whole := r.Body
	body, err := io.ReadAll(io.LimitReader(whole, maxBody+1))
	r.Body = &restored{io.MultiReader(bytes.NewReader(body), whole), whole}
	switch {
	case err != nil:
		return nil, malformed("the body cannot be read")
	case len(body) > maxBody:
		return nil, malformed("the body is longer than 64 KiB")
	}
	return body, nil
}

// A restored body is read once more from its beginning.
type restored struct {
	io.Reader
	io.Closer
}

var errNoObject = malformed("the body is no JSON object")

// jsonField returns the value of a field of an object; "" if it has none.
func jsonField(body []byte, field string) (value string, err error) {
	d := json.NewDecoder(bytes.NewReader(body))
	if begin, err := d.Token(); errors.Is(err, io.EOF) {
		return "", nil
	} else if begin != json.Delim('{') {
		return "", errNoObject
	}
	found := false
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return "", errNoObject
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return "", errNoObject
		}
		if !strings.EqualFold(name.(string), field) {
			continue
		}
		if found {
			return "", malformed("the field comes twice")
		}
		switch found = true; {
		case raw[0] == '"':
			_ = json.Unmarshal(raw, &value) // Decode has found a valid string
		case strings.IndexByte("-"+digits, raw[0]) >= 0:
			value = string(raw)
		default:
			return "", malformed("the field is neither a string nor a number")
		}
	}
	if _, err := d.Token(); err != nil {
		return "", errNoObject
	}
	return value, nil
}
