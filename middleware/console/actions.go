// The changes that operators make over HTTP.

package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

type operatorKey struct{}

func operator(ctx context.Context) string {
	who, _ := ctx.Value(operatorKey{}).(string)
	return who
}

// named is the part of a request that names a subject.
type named struct{ Policy, Key, Usr, IP string }

func (n named) subject() (s Subject, err error) {
	given := 0
	for name, value := range map[string]string{"key": n.Key, account: n.Usr, address: n.IP} {
		if value != "" {
			given++
			s, err = subjectOf(name, value)
		}
	}
	if given != 1 {
		return s, Subject{}.validate()
	}
	s.Policy = n.Policy
	return s, err
}

// resolve returns the subject with the text of its key; with prefix also of a first
// part of keys, or everyone.
func (h *handler) resolve(n named, prefix bool) (Subject, error) {
	s, err := n.subject()
	if err != nil {
		return s, err
	}
	if prefix {
		key, err := h.console.place(s)
		return Subject{Policy: s.Policy, Key: key}, err
	}
	t, err := h.console.one(s)
	if err != nil {
		return Subject{}, err
	}
	return Subject{Policy: s.Policy, Key: t.key}, nil
}

// changed logs a change, unless err is why there is none, and returns err.
func (h *handler) changed(r *http.Request, err error, change string, s Subject, more ...any) error {
	if err == nil {
		h.logger.Info("ratelimit: console: "+change, append([]any{"who", operator(r.Context()), "policy", s.Policy, "key", s.Key}, more...)...)
	}
	return err
}

// act makes a change of the subject that a body names, with prefix also of a first part of keys, or everyone. change
// also returns what the operator reads of it, and what else the log has.
func (h *handler) act(r *http.Request, body any, n *named, name string, prefix bool, change func(Subject) (reply any, more []any, err error)) (any, error) {
	if err := read(r, body); err != nil {
		return nil, err
	}
	s, err := h.resolve(*n, prefix)
	if err != nil {
		return nil, err
	}
	reply, more, err := change(s)
	// The log also has an attempt that found nothing to lift, because it has forgotten denials.
	if none := (*refusal)(nil); err == nil || errors.Is(err, ErrBanned) || errors.Is(err, ErrNotFound) || errors.As(err, &none) && none.status == http.StatusNotFound {
		_ = h.changed(r, nil, name, s, more...)
	}
	if reply != nil && err != nil { // a ban still holds
		did, _ := json.Marshal(reply) // of integers and texts
		err = fmt.Errorf("%w (done: %s)", err, did)
	}
	return reply, err
}

// units returns the answer to a change that gave units back, and what the log has. Nothing to give back is no success.
func units(n int64, err error) (reply any, more []any, _ error) {
	more = []any{"units", n}
	if n > 0 {
		return map[string]int64{"units": n}, more, err
	}
	if err == nil {
		err = &refusal{http.StatusNotFound, "no units of the key are in use, under any limit that this process knows for it"}
	}
	return nil, more, err
}

func (h *handler) reset(r *http.Request) (any, error) {
	var n named
	return h.act(r, &n, &n, "reset", false, func(s Subject) (any, []any, error) {
		return units(h.console.Reset(r.Context(), s))
	})
}

func (h *handler) grant(r *http.Request) (any, error) {
	var body struct {
		named
		Units int64
	}
	return h.act(r, &body, &body.named, "grant", false, func(s Subject) (any, []any, error) {
		return units(h.console.Grant(r.Context(), s, body.Units))
	})
}

func (h *handler) ban(r *http.Request) (any, error) {
	var body struct {
		named
		ending
	}
	return h.act(r, &body, &body.named, "ban", true, func(s Subject) (any, []any, error) {
		until, err := body.at()
		if err == nil {
			err = h.console.Ban(r.Context(), s, until, operator(r.Context()))
		}
		return nil, []any{"until", instant(until)}, err
	})
}

func (h *handler) unban(r *http.Request) (any, error) {
	var n named
	return h.act(r, &n, &n, "unban", true, func(s Subject) (any, []any, error) {
		lifted, err := h.console.Unban(r.Context(), s)
		more := []any{"lifted", len(lifted)}
		if len(lifted) == 0 {
			return nil, more, err
		}
		return map[string]any{"lifted": lifted}, more, err
	})
}

// instant returns the end of an override for logs.
func instant(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Format(time.RFC3339)
}

// place returns the part of a request to /overrides/{policy} that names a subject.
func place(r *http.Request) (named, error) {
	query, err := parameters(r, "key", account, address)
	return named{r.PathValue("policy"), query.Get("key"), query.Get(account), query.Get(address)}, err
}

func (h *handler) set(r *http.Request) (any, error) {
	var body override
	n, err := place(r)
	if err == nil {
		err = read(r, &body)
	}
	if err != nil {
		return nil, err
	}
	o := ratelimit.Override{Mode: body.Mode}
	if o.Limit, err = body.limit(h.console.find(n.Policy)); err != nil {
		return nil, err
	}
	if o.Until, err = body.at(); err != nil {
		return nil, err
	}
	s, err := h.resolve(n, true)
	if err == nil {
		o.By = operator(r.Context())
		err = h.console.set(r.Context(), s, o)
	}
	return nil, h.changed(r, err, "override", s,
		"limit", o.Limit.String(), "mode", cmp.Or(string(o.Mode), "on"), "until", instant(o.Until))
}

func (h *handler) overrides(r *http.Request) (any, error) {
	n, err := place(r)
	if err != nil {
		return nil, err
	}
	edit, err := h.console.editor(n.Policy)
	if err != nil {
		return nil, err
	}
	all, err := edit.List(r.Context(), n.Policy)
	if err != nil || n == (named{Policy: n.Policy}) {
		return all, err
	}
	s, err := h.find(r.Context(), edit, n)
	if err != nil {
		return nil, err
	}
	if o, found := all[s.Key]; found {
		return o, nil
	}
	return nil, &refusal{http.StatusNotFound, "the key has no override of its own"}
}

func (h *handler) clear(r *http.Request) (any, error) {
	n, err := place(r)
	if err != nil {
		return nil, err
	}
	edit, err := h.console.editor(n.Policy)
	if err != nil {
		return nil, err
	}
	s, err := h.find(r.Context(), edit, n)
	if err == nil {
		err = edit.Clear(r.Context(), s.Policy, s.Key)
	}
	if _, foreign := h.resolve(n, true); foreign != nil {
		s.Key = "(not a key of the policy)" // it may be a secret
	}
	return nil, h.changed(r, err, "clear", s)
}

// find returns the subject of an override to read or to clear. The table may hold a
// key that the policy never makes, because other programs write to the table, and
// policies change.
func (h *handler) find(ctx context.Context, edit editor, n named) (Subject, error) {
	s, err := h.resolve(n, true)
	if n.Key == "" || !errors.Is(err, algorithms.ErrInvalid) {
		return s, err
	}
	all, listErr := edit.List(ctx, n.Policy)
	if listErr != nil {
		return Subject{}, listErr
	}
	if _, found := all[n.Key]; found {
		return Subject{Policy: n.Policy, Key: n.Key}, nil
	}
	return Subject{}, err
}

func (h *handler) allOverrides(r *http.Request) (any, error) {
	since, err := sinceOf(r, "here")
	if err != nil {
		return nil, err
	}
	set, err := h.console.Overrides(r.Context(), since)
	if err != nil {
		return nil, err
	}
	bans, err := h.console.Bans(r.Context())
	v := &overridesView{Set: set, Bans: append([]Standing{}, bans...)}
	if h.elsewhere(r) { // a ban holds on all instances, so several may know it
		v.asked = askAll(h, r, "/overrides", func(one *overridesView) {
			for _, ban := range one.Bans {
				if !slices.ContainsFunc(v.Bans, ban.sameKey) {
					v.Bans = append(v.Bans, ban)
				}
			}
		})
	}
	return v, err
}

func (h *handler) clearAll(r *http.Request) (any, error) {
	since, err := sinceOf(r)
	if err == nil && since.IsZero() {
		err = &refusal{http.StatusBadRequest, "want since=, such as 2026-11-26T14:00:00Z or 1h"}
	}
	if err != nil {
		return nil, err
	}
	all, err := h.console.ClearOverrides(r.Context(), since)
	for policy, keys := range all {
		for key := range keys {
			_ = h.changed(r, err, "clear", Subject{Policy: policy, Key: key}, "since", since.Format(time.RFC3339))
		}
	}
	return all, err
}
