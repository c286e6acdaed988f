package migrate

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/httprate"
	httprateredis "github.com/go-chi/httprate-redis"
	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
	ratelimit "github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// TestKeys: the commands of COMING_FROM.md delete the keys of one library each, and no other key.
func TestKeys(t *testing.T) {
	t.Parallel()
	commands := commands(t)
	if len(commands) != 5 {
		t.Fatalf("COMING_FROM.md has %d commands, want 5", len(commands))
	}
	server := redistest.Start(t)
	rdb := server.Client()
	fill(t, rdb)
	rdb.Set(t.Context(), "yours", 1, 0)
	for _, key := range keys(t, rdb, "*") {
		rdb.Persist(t.Context(), key) // on a busy machine, a key would expire before its command
	}
	for _, c := range commands {
		before := keys(t, rdb, "*")
		theirs := keys(t, rdb, c[2]+"*")
		if out, want := run(t, c[1], server.Addr()), []string{strconv.Itoa(len(theirs)), "1"}; len(theirs) == 0 || !slices.Equal(out, want) {
			t.Errorf("%s: got %q, want %q", c[1], out, want)
		}
		before = slices.DeleteFunc(before, func(key string) bool { return strings.HasPrefix(key, c[2]) })
		if after := keys(t, rdb, "*"); !slices.Equal(after, before) {
			t.Errorf("%s: got %q left, want %q", c[1], after, before)
		}
	}
	if left := keys(t, rdb, "*"); !slices.Equal(left, []string{"yours"}) {
		t.Errorf("got %q left, want only the key of another program", left)
	}
}

// TestKeysOfCluster: for each master, the command deletes penstock's keys.
func TestKeysOfCluster(t *testing.T) {
	t.Parallel()
	rdb := redistest.StartCluster(t).Client()
	limiter := newShared(t, rdb, 0)
	for i := range 60 {
		d, err := algorithms.Allow(t.Context(), limiter, fmt.Sprint("usr=", i), algorithms.TokenBucket(1, time.Hour))
		if err != nil || d.Source != algorithms.Shared {
			t.Fatalf("got %+v and error %v, want a decision of Redis", d, err)
		}
	}
	if err := limiter.Close(); err != nil {
		t.Fatal(err)
	}
	all := commands(t)
	err := rdb.ForEachMaster(t.Context(), func(_ context.Context, master *redis.Client) error {
		run(t, all[len(all)-1][1], master.Options().Addr)
		if left := keys(t, master, "*"); len(left) > 0 {
			t.Errorf("got %q left, want none", left)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// commands returns the commands of COMING_FROM.md, each with the beginning of the keys that it deletes.
func commands(t *testing.T) [][]string {
	t.Helper()
	document, err := os.ReadFile("../../../COMING_FROM.md")
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`(?m)^\$ (redis-cli .* --pattern '(.*)\*'.*)$`).FindAllStringSubmatch(string(document), -1)
}

func run(t *testing.T, command, addr string) []string {
	t.Helper()
	shell := exec.CommandContext(t.Context(), "sh", "-c", command)
	shell.Env = append(os.Environ(), "REDIS=redis://"+addr)
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v", command, err)
	}
	return strings.Fields(string(out))
}

// fill lets each library count two clients. A shell could misread the key of the second. throttled's keys end with a newline.
// The instance of penstock has ended.
func fill(t *testing.T, rdb *redis.Client) {
	t.Helper()
	ulule, err := ululeredis.NewStore(rdb)
	if err != nil {
		t.Fatal(err)
	}
	throttledStore, err := goredisstore.NewCtx(rdb, "throttled:")
	if err != nil {
		t.Fatal(err)
	}
	limiter := newShared(t, rdb, 0)
	handlers := []http.Handler{
		httprateBefore(order, httprate.Option(httprateredis.WithRedisLimitCounter(&httprateredis.Config{Client: rdb}))),
		redisRateBefore(order, redis_rate.NewLimiter(rdb)), redisRateAfter(order, limiter),
	}
	for _, before := range []func() (http.Handler, error){
		func() (http.Handler, error) { return ululeBefore(order, ulule) },
		func() (http.Handler, error) { return throttledBefore(order, throttledStore) },
	} {
		h, err := before()
		if err != nil {
			t.Fatal(err)
		}
		handlers = append(handlers, h)
	}
	for _, h := range handlers {
		for _, s := range []step{{}, {path: "/it's", from: "[2001:db8::1]:1", header: http.Header{"X-Project": {`it's "odd"\`}}}} {
			s.answerOf(h)
		}
	}
	table, err := overrides.NewRedis(rdb, limiter, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = table.Close() }()
	if err := table.Set(t.Context(), "project", "hdr=acme", ratelimit.Override{Limit: algorithms.TokenBucket(1, time.Minute)}); err != nil {
		t.Fatal(err)
	}
	if err := limiter.Close(); err != nil {
		t.Fatal(err)
	}
}

func keys(t *testing.T, rdb *redis.Client, pattern string) []string {
	t.Helper()
	all, err := rdb.Keys(t.Context(), pattern).Result()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}
