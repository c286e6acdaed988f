// A managed Redis announces maintenance, and is then silent.

package batch

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
)

// After an announcement, go-redis waits ten seconds for each reply of the connection,
// whatever timeouts its options name. Each call ends in time all the same: those of a
// lone caller, which waits on the connection itself, and those of a crowd.
func TestMaintenanceDelaysNoCall(t *testing.T) {
	for name, message := range map[string]string{
		"a shard migrates":                    "MIGRATING 1 30",
		"a shard fails over":                  "FAILING_OVER 1 30",
		"the endpoint moves":                  "MOVING 1 30 127.0.0.1:2",
		"the endpoint moves, without address": "MOVING 1 2",
	} {
		for mode, config := range map[string]*maintnotifications.Config{
			"default options":       nil,
			"notifications enabled": {Mode: maintnotifications.ModeEnabled},
		} {
			for who, callers := range map[string]int{"a lone caller": 1, "a crowd": 200} {
				t.Run(name+"/"+mode+"/"+who, func(t *testing.T) {
					if raceEnabled && strings.HasSuffix(message, ":2") {
						t.Skip("left out under the race detector: go-redis 9.22 moves a connection that is in use, which is a race of its own")
					}
					synctest.Test(t, func(t *testing.T) { wantCallsInTime(t, message, config, callers) })
				})
			}
		}
	}
}

// wantCallsInTime lets callers receive a message of a server that then falls silent, and
// says for how long their next calls last.
func wantCallsInTime(t *testing.T, message string, config *maintnotifications.Config, callers int) {
	server := &pipeServer{managed: true}
	client := server.client(t, func(o *redis.Options) { o.MaintNotificationsConfig = config })
	r := newLane(client, Options{Deadline: pipeDeadline})
	all := func(reason string) { // "": any
		t.Helper()
		var running sync.WaitGroup
		for range callers {
			running.Go(func() {
				took, err := takeOne(context.Background(), r)
				if reason != "" && trouble.Of(err).Reason != reason || took > 2*pipeDeadline {
					t.Errorf("got %v after %v, want %s within two deadlines of %v", err, took, reason, pipeDeadline)
				}
			})
		}
		running.Wait()
	}
	all(trouble.Key) // connects
	server.announce(message)
	all("") // a client that receives MOVING may close a connection that is in use
	time.Sleep(2 * time.Second)
	synctest.Wait()
	all("")
	if client.Options().MaintNotificationsConfig.Mode == maintnotifications.ModeDisabled {
		t.Fatal("the client has asked for no notifications")
	}
	server.setSilent(true)
	all(trouble.Timeout)
	all(trouble.Timeout)
	time.Sleep((clientDeadlines + 1) * pipeDeadline)
	if n := r.underWay(); n != 0 {
		t.Errorf("after %d deadlines %d batches are under way, want none", clientDeadlines+1, n)
	}
}
