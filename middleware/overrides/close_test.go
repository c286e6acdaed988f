package overrides_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/middleware/overrides"
)

// A stuckClient answers at once until it is stuck. Then commands wait until their context ends or the test lets go.
type stuckClient struct {
	stuck  atomic.Bool
	letsGo chan struct{}
}

func (c *stuckClient) Process(ctx context.Context, cmd redis.Cmder) error {
	if !c.stuck.Load() {
		return nil
	}
	select {
	case <-ctx.Done():
		cmd.SetErr(ctx.Err())
	case <-c.letsGo:
	}
	return cmd.Err()
}

// TestCloseDoesNotWaitForOthers: a Refresh that waits for Redis delays neither Close nor the goroutine, whatever the
// goroutine does at the moment.
func TestCloseDoesNotWaitForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &stuckClient{letsGo: make(chan struct{})}
		r, err := overrides.NewRedis(client, nil, &overrides.RedisOptions{Prefix: "penstock", Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(59*time.Second + 750*time.Millisecond)
		client.stuck.Store(true)
		refreshed := make(chan error)
		go func() { refreshed <- r.Refresh(context.Background()) }()
		time.Sleep(time.Minute) // the goroutine would read, and then sweep
		closed := time.Now()
		if err := r.Close(); err != nil || time.Since(closed) > 0 {
			t.Errorf("Close took %v, error %v, want no time", time.Since(closed), err)
		}
		close(client.letsGo)
		if err := <-refreshed; err != nil {
			t.Errorf("got %v of the other Refresh", err)
		}
	})
}
