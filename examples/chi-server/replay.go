// The replay of access logs.

package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/penstock-go/penstock/examples/chi-server/replay"
)

// replayLogs runs the requests of logs through the routes and the limits of the API.
func (c config) replayLogs(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
	service := replay.Service{Wrap: withUser, Plans: make(map[string]string)}
	for _, identity := range accounts {
		service.Plans[identity.ID] = identity.Tier
	}
	var a *api
	service.Router = func(e *replay.Engine) (_ chi.Router, err error) {
		c.engine = e
		if a, err = newAPI(ctx, c, slog.New(slog.DiscardHandler)); err != nil {
			return nil, err
		}
		return a.handler.(chi.Router), nil
	}
	err := replay.Run(ctx, c.replay, service, stdin, stdout, stderr)
	if a != nil {
		err = errors.Join(err, a.close(context.WithoutCancel(ctx)))
	}
	return err
}

// withUser sends the API key that the limits look for. A log has the account instead.
func withUser(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := replay.User(r.Context()); ok {
			r.Header.Set("X-API-Key", "replayed")
		}
		next.ServeHTTP(w, r)
	})
}
