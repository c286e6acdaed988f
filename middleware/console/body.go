// Bodies of requests: when an override ends, and which field is wrong.

package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

// An override is the body that sets one. Since and By are what a GET shows, and change nothing.
type override struct {
	Limit *string
	Mode  ratelimit.Mode
	ending
	Since time.Time
	By    string
}

// limit returns the limit of an override for a policy; none if the body has none. Without the name of an algorithm, a
// limit is a token bucket, which would forget what a policy of another algorithm has counted. So it must be named then.
func (o *override) limit(w *watched) (algorithms.Limit, error) {
	if o.Limit == nil {
		return algorithms.Limit{}, nil
	}
	l, err := algorithms.ParseLimit(*o.Limit)
	if err != nil || w == nil || strings.Contains(*o.Limit, l.Algorithm().String()) {
		return l, err
	}
	for _, own := range append(slices.Collect(maps.Values(w.policy.Tiers)), w.policy.Limit) {
		if own.Algorithm() == l.Algorithm() {
			return l, nil
		}
	}
	return l, &refusal{http.StatusBadRequest, fmt.Sprintf("the limit %.80q names no algorithm, and policy %q has %s: name it, as %s, because another algorithm starts full",
		*o.Limit, w.policy.Name, w.policy.Limit, w.policy.Limit.Algorithm())}
}

// An ending says when an override ends: neither field means never.
type ending struct{ Until, For *string }

// at returns the instant; the zero Time means never.
func (e *ending) at() (time.Time, error) {
	refuse := func(format string, args ...any) (time.Time, error) {
		return time.Time{}, &refusal{http.StatusBadRequest, fmt.Sprintf(format, args...)}
	}
	switch {
	case e.Until != nil && e.For != nil:
		return refuse(`the fields "until" and "for" cannot be combined`)
	case e.For != nil:
		d, err := time.ParseDuration(*e.For)
		if err != nil || d <= 0 {
			return refuse(`the field "for" is %.40q: want a time such as 1h or 30m`, *e.For)
		}
		return time.Now().UTC().Add(d + time.Second - 1).Truncate(time.Second), nil // overrides have whole seconds; never too short
	case e.Until != nil:
		t, err := time.Parse(time.RFC3339, *e.Until)
		if err != nil {
			return refuse(`the field "until" is %.40q: want an instant such as 2026-11-26T14:00:00Z, or "for" with a time such as 1h`, *e.Until)
		}
		return t, nil
	}
	return time.Time{}, nil
}

// malformed says what is wrong with a body that has not become a request.
func malformed(err error) error {
	var mismatch *json.UnmarshalTypeError
	detail := "the body must be one JSON object with the fields of this request"
	if field, unknown := strings.CutPrefix(fmt.Sprint(err), "json: unknown field "); unknown {
		detail = "the request has no field " + field
	} else if errors.As(err, &mismatch) && mismatch.Field != "" {
		name := strings.ToLower(mismatch.Field[strings.LastIndexByte(mismatch.Field, '.')+1:]) // of Go's path
		detail = fmt.Sprintf("the field %q has the wrong type: %s", name, mismatch.Value)
	}
	return &refusal{http.StatusBadRequest, detail}
}
