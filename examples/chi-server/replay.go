// The replay of access logs.

package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware/replay"
)

// replayLogs runs the requests of logs through the routes and the limits of the API.
func (c config) replayLogs(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
	var a *api
	handler := func(limiter algorithms.Limiter) (_ http.Handler, err error) {
		c.limiter = limiter
		if a, err = newAPI(ctx, c, slog.New(slog.DiscardHandler)); err != nil {
			return nil, err
		}
		return a.handler, nil
	}
	o := c.replay
	o.Tiers = make(map[string]string)
	for _, account := range accounts {
		o.Tiers[account.ID] = account.Tier
	}
	o.Stdin, o.Stdout, o.Stderr = stdin, stdout, stderr
	err := replay.Run(ctx, handler, o)
	if a != nil {
		err = errors.Join(err, a.close(context.WithoutCancel(ctx)))
	}
	return err
}
