// Handlers of the log that fail.

package overrides_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/middleware/overrides"
)

// A flappingClient fails every other command.
type flappingClient struct{ commands int }

func (c *flappingClient) Process(_ context.Context, cmd redis.Cmder) error {
	if c.commands++; c.commands%2 == 1 {
		cmd.SetErr(errors.New("no Redis"))
	}
	return cmd.Err()
}

// A badHandler is a handler of logs that hangs or panics.
type badHandler struct {
	slog.Handler
	handle func()
}

func (badHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h badHandler) Handle(context.Context, slog.Record) error {
	h.handle()
	return nil
}

// TestBadLogHandlers: the overrides are read all the same, the process goes on, and Close waits two seconds at most.
func TestBadLogHandlers(t *testing.T) {
	for name, panics := range map[string]bool{"panics": true, "hangs": false} {
		synctest.Test(t, func(t *testing.T) {
			lines, hangs, flapping := 0, make(chan struct{}), new(flappingClient)
			r, err := overrides.NewRedis(flapping, nil, &overrides.RedisOptions{Prefix: "penstock", Logger: slog.New(badHandler{handle: func() {
				if lines++; panics {
					panic("on purpose")
				}
				<-hangs
			}})})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if lines == 0 || flapping.commands < 100 {
				t.Errorf("%s: got %d lines and %d readings in a minute, want two every second", name, lines, flapping.commands)
			}
			closed := time.Now()
			if err := r.Close(); err != nil || time.Since(closed) > 2*time.Second {
				t.Errorf("%s: Close took %v, %v", name, time.Since(closed), err)
			}
			close(hangs)
			synctest.Wait()
		})
	}
}
