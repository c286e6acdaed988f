package middleware

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/penstock-go/penstock/algorithms/overrides"
)

type operatorKey struct{}

func withOperator(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, operatorKey{}, who)
}

// operator returns whom the function that authorizes has named.
func operator(ctx context.Context) string {
	who, _ := ctx.Value(operatorKey{}).(string)
	return who
}

// logger is that of the first middleware.
func (c *Console) logger() *slog.Logger {
	if len(c.all) == 0 {
		return slog.Default()
	}
	return c.all[0].troubles.logger
}

// changed logs a change that was made. Keys hold no secrets: those of API keys
// are digests.
func (h *consoleHandler) changed(r *http.Request, what, policy, key string, more ...any) {
	h.logger.Info("ratelimit: console: "+what, append([]any{"who", operator(r.Context()), "policy", policy, "key", key}, more...)...)
}

func (h *consoleHandler) reset(r *http.Request) (any, error) {
	var o struct{ Policy, Key string }
	err := read(r, &o)
	if err == nil {
		err = h.console.Reset(r.Context(), Subject{Policy: o.Policy, Key: o.Key})
	}
	if err == nil {
		h.changed(r, "reset", o.Policy, o.Key)
	}
	return nil, err
}

func (h *consoleHandler) grant(r *http.Request) (any, error) {
	var o struct {
		Policy, Key, Tier string
		Units             int64
	}
	err := read(r, &o)
	if err == nil {
		err = h.console.Grant(r.Context(), Subject{Policy: o.Policy, Key: o.Key, Tier: o.Tier}, o.Units)
	}
	if err == nil {
		h.changed(r, "grant", o.Policy, o.Key, "tier", o.Tier, "units", o.Units)
	}
	return nil, err
}

func (h *consoleHandler) ban(r *http.Request) (any, error) {
	var o struct {
		Policy, Key string
		Until       time.Time
	}
	err := read(r, &o)
	if err == nil {
		err = h.console.Ban(r.Context(), Subject{Policy: o.Policy, Key: o.Key}, o.Until)
	}
	if err == nil {
		h.changed(r, "ban", o.Policy, o.Key, "until", instant(o.Until))
	}
	return nil, err
}

func (h *consoleHandler) unban(r *http.Request) (any, error) {
	var o struct{ Policy, Key string }
	err := read(r, &o)
	if err == nil {
		err = h.console.Unban(r.Context(), Subject{Policy: o.Policy, Key: o.Key})
	}
	if err == nil {
		h.changed(r, "unban", o.Policy, o.Key)
	}
	return nil, err
}

// instant returns an instant as a log has it.
func instant(t time.Time) string {
	if t.IsZero() {
		return "for good"
	}
	return t.Format(time.RFC3339)
}

func (h *consoleHandler) overrides(r *http.Request) (any, error) {
	query, err := parameters(r, "", "key")
	if err != nil {
		return nil, err
	}
	s := Subject{Policy: r.PathValue("policy"), Key: query["key"]}
	edit, err := h.console.editor(s)
	if err != nil {
		return nil, err
	}
	all, err := edit.List(r.Context(), s.Policy)
	if err != nil || s.Key == "" {
		return all, err
	}
	if o, found := all[s.Key]; found {
		return o, nil
	}
	return nil, &refusal{http.StatusNotFound, "the key has no override of its own"}
}

func (h *consoleHandler) set(r *http.Request) (any, error) {
	var o overrides.Override
	query, err := parameters(r, "key")
	if err == nil {
		err = read(r, &o)
	}
	if err != nil {
		return nil, err
	}
	s := Subject{Policy: r.PathValue("policy"), Key: query["key"]}
	if err := h.console.set(r.Context(), s, o); err != nil {
		return nil, err
	}
	h.changed(r, "override", s.Policy, s.Key, "limit", o.Limit.String(), "mode", o.Mode.String(), "until", instant(o.Until))
	return nil, nil
}

func (h *consoleHandler) clear(r *http.Request) (any, error) {
	query, err := parameters(r, "key")
	if err != nil {
		return nil, err
	}
	s := Subject{Policy: r.PathValue("policy"), Key: query["key"]}
	if err := h.console.clear(r.Context(), s); err != nil {
		return nil, err
	}
	h.changed(r, "clear", s.Policy, s.Key)
	return nil, nil
}
