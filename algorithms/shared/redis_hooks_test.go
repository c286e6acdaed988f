// The clients through which commands go.

package shared

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// The hooks of a program's client see the limiter's commands, alone and in pipelines,
// unless the program adds them after New. The program's own commands pass them all, and
// keep its timeouts.
func TestHooksSeeCommands(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := clientOf(t, server.Addr(), func(o *redis.Options) { o.ReadTimeout = time.Hour })
	before, between, after := redistest.Script(nil), redistest.Script(nil), redistest.Script(nil)
	client.AddHook(before)
	one := newRedis(t, client, &Options{Deadline: 30 * time.Second, Prefix: "one"})
	client.AddHook(between)
	two := newRedis(t, client, &Options{Deadline: 20 * time.Second, Prefix: "two"})
	client.AddHook(after)
	for _, l := range []*Limiter{one, two} {
		take(t, l, "usr=1", algorithms.TokenBucket(10, time.Hour), 1) // by its caller
		if _, err := l.redis.beat(t.Context(), "a"); err != nil {     // a pipeline, by a worker
			t.Fatal(err)
		}
	}
	do(t, client, "echo", "program")
	for what, want := range map[string][3]int{
		"evalsha": {2, 0, 0}, "{usr=1}": {3, 0, 0}, "pexpire one:{instances}": {1, 0, 0}, "pexpire two:{instances}": {1, 0, 0}, "echo program": {1, 1, 1},
	} {
		if got := [3]int{before.Count(what), between.Count(what), after.Count(what)}; got[0] != want[0] || got[2] != want[2] {
			t.Errorf("%s: the hooks saw it %d times, want %d", what, got, want)
		}
	}
	if o := client.Options(); o.ReadTimeout != time.Hour {
		t.Errorf("the program's client has a ReadTimeout of %v now, want its own", o.ReadTimeout)
	}
}
