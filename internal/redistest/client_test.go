package redistest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

var errScripted, errRefused = errors.New("scripted"), errors.New("refused by Redis")

// send sends a command that takes any reply.
func send(ctx context.Context, c Processor, args ...any) (any, error) {
	cmd := redis.NewCmd(ctx, args...)
	err := c.Process(ctx, cmd)
	if !errors.Is(err, cmd.Err()) {
		return nil, errors.New("Process returned another error than the command has")
	}
	return cmd.Result()
}

// TestSteps takes an INCR of a counter through steps, and wants its answer and how often it was executed.
func TestSteps(t *testing.T) {
	t.Parallel()
	client := Start(t).Client()
	for name, tt := range map[string]struct {
		steps    []Step
		want     any
		err      error
		executed int
	}{
		"none":              {nil, int64(1), nil, 1},
		"fail":              {[]Step{Fail(errScripted)}, nil, errScripted, 0},
		"lost reply":        {[]Step{FailReply(errScripted)}, int64(1), errScripted, 1},
		"reply":             {[]Step{Reply("PONG")}, "PONG", nil, 0},
		"no value":          {[]Step{Reply(nil)}, nil, nil, 0},
		"delays":            {[]Step{Wait(time.Microsecond), WaitReply(time.Microsecond)}, int64(1), nil, 1},
		"later steps":       {[]Step{Fail(errScripted), Reply("PONG")}, nil, errScripted, 0},
		"another command":   {[]Step{Send("ECHO", "hello")}, "hello", nil, 0},
		"a refused command": {[]Step{Send("GET")}, nil, errRefused, 0},
		"chosen":            {[]Step{On("INCR counter", Fail(errScripted))}, nil, errScripted, 0},
		"not chosen":        {[]Step{On("other", Fail(errScripted))}, int64(1), nil, 1},
		"after all turns":   {[]Step{InTurn()}, int64(1), nil, 1},
		"the first":         {[]Step{On("incr", InTurn(Fail(errScripted), Reply("no")))}, nil, errScripted, 0},
		"an argument":       {[]Step{Inspect(func(cmd redis.Cmder) { cmd.Args()[1] = "elsewhere" })}, int64(1), nil, 0},
	} {
		if err := client.Del(t.Context(), "counter", "elsewhere").Err(); err != nil {
			t.Fatal(err)
		}
		c := Script(client, tt.steps...)
		got, err := send(t.Context(), c, "incr", "counter")
		if redis.HasErrorPrefix(err, "wrong number") {
			err = errRefused
		}
		if got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%s: got %v, %v; want %v, %v", name, got, err, tt.want, tt.err)
		}
		if got, _ := client.Get(t.Context(), "counter").Int(); got != tt.executed {
			t.Errorf("%s: executed %d times, want %d", name, got, tt.executed)
		}
		if c.Count("INCR") != 1 || !c.Idle() {
			t.Errorf("%s: got %q, idle %t; want one trip, and idle", name, c.Trips(), c.Idle())
		}
	}
}

// TestStepsOfTypedCommands answers commands that take values of one type.
func TestStepsOfTypedCommands(t *testing.T) {
	t.Parallel()
	c := Script(nil, On("info", Reply("redis_version:7")), On("zcard", Reply(int64(3))))
	ctx := t.Context()
	info, count := redis.NewStringCmd(ctx, "info", "server"), redis.NewIntCmd(ctx, "zcard", "k")
	ping := redis.NewStatusCmd(ctx, "ping") // passes, and there is nothing behind c
	for _, cmd := range []redis.Cmder{info, count, ping} {
		if err := c.Process(ctx, cmd); err != nil {
			t.Errorf("%v: %v", cmd, err)
		}
	}
	if info.Val() != "redis_version:7" || count.Val() != 3 || ping.Val() != "" {
		t.Errorf("got %v, %v, %v", info, count, ping)
	}
	for _, value := range []any{"text", 7, errScripted} {
		c.Set(Reply(value))
		if err := c.Process(ctx, redis.NewIntCmd(ctx, "zcard", "k")); err == nil {
			t.Errorf("a command of integers took %v", value)
		}
	}
}

// TestHeld holds trips before they are executed and lets them go in the order of their arrival.
func TestHeld(t *testing.T) {
	t.Parallel()
	client := Start(t).Client()
	c := Script(client, Hold())
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() { _, _ = send(t.Context(), c, "rpush", "list", i) })
		c.UntilHeld(t, i+1)
	}
	list := func() []string { return client.LRange(t.Context(), "list", 0, -1).Val() }
	if got := list(); len(got) > 0 || c.Idle() {
		t.Errorf("got %q, idle %t, while all are held", got, c.Idle())
	}
	c.Release(1)
	Until(t, "the oldest was executed", func() bool { return slices.Equal(list(), []string{"0"}) })
	c.Set() // concerns later trips only
	if got := c.Held(); got != 3 {
		t.Errorf("got %d held, want 3", got)
	}
	if _, err := send(t.Context(), c, "ping"); err != nil {
		t.Error(err)
	}
	c.Open()
	wg.Wait()
	if got := list(); len(got) != 4 || c.Held() != 0 {
		t.Errorf("got %q and %d held, want all executed", got, c.Held())
	}
}

// TestHeldReply holds a trip after it was executed, even if its context has ended.
func TestHeldReply(t *testing.T) {
	t.Parallel()
	client := Start(t).Client()
	c := Script(client, HoldReply())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := send(ctx, c, "set", "k", "v")
		done <- err
	}()
	c.UntilHeld(t, 1)
	wantValue := func(want int64) {
		t.Helper()
		if got := client.Exists(t.Context(), "k").Val(); got != want {
			t.Errorf("got %d keys, want %d", got, want)
		}
	}
	wantValue(1)
	cancel()
	c.Forget()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := c.Count(""); got != 0 {
		t.Errorf("got %d trips after Forget", got)
	}
	c.Release(2) // in advance
	c.Set(Hold())
	go func() { done <- c.Process(t.Context(), redis.NewIntCmd(t.Context(), "del", "k")) }()
	c.UntilHeld(t, 1) // Set has taken the advance back
	wantValue(1)
	c.Release(2)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got := c.Held(); got != 0 {
			t.Errorf("got %d held, want 0", got)
		}
		go func() { done <- c.Process(t.Context(), redis.NewIntCmd(t.Context(), "del", "k")) }()
	}
	c.Open()
	if err := <-done; err != nil {
		t.Error(err)
	}
	wantValue(0)
}

// TestDelaysAndContexts wants Wait to end with the context, except after Deaf, and WaitReply to ignore the context.
func TestDelaysAndContexts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		steps []Step
		took  time.Duration
		err   error
	}{
		"wait":             {[]Step{Wait(time.Hour)}, time.Second, context.DeadlineExceeded},
		"short wait":       {[]Step{Wait(time.Millisecond)}, time.Millisecond, nil},
		"deaf wait":        {[]Step{Deaf(), Wait(time.Hour)}, time.Hour, nil},
		"wait for a reply": {[]Step{WaitReply(time.Hour)}, time.Hour, nil},
		"both": {[]Step{
			InTurn(Wait(time.Millisecond)), WaitReply(time.Millisecond), Fail(errScripted),
		}, 2 * time.Millisecond, errScripted},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				start := time.Now()
				_, err := send(ctx, Script(nil, tt.steps...), "ping")
				if took := time.Since(start); took != tt.took || !errors.Is(err, tt.err) {
					t.Errorf("got %v after %v, want %v after %v", err, took, tt.err, tt.took)
				}
			})
		})
	}
}

// TestTurns wants each trip to have its turn in the order of arrival, although earlier trips are still under way.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := Script(nil, InTurn(Wait(3*time.Second), Wait(2*time.Second), Fail(errScripted)))
		var wg sync.WaitGroup
		start := time.Now()
		for _, want := range []struct {
			took time.Duration
			err  error
		}{{3 * time.Second, nil}, {2 * time.Second, nil}, {0, errScripted}, {0, nil}} {
			wg.Go(func() {
				_, err := send(t.Context(), c, "ping")
				if took := time.Since(start); took != want.took || !errors.Is(err, want.err) {
					t.Errorf("took %v, got error %v; want %v, %v", took, err, want.took, want.err)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
	})
}

// TestHoldInABubble wants virtual time to pass while trips are held.
func TestHoldInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := Script(nil, Hold())
		done := make(chan struct{})
		go func() { _, _ = send(t.Context(), c, "ping"); close(done) }()
		c.UntilHeld(t, 1)
		time.Sleep(time.Hour)
		c.Open()
		<-done
	})
}

// A sealed argument notes that it was read.
type sealed struct{ read *bool }

func (s sealed) MarshalBinary() ([]byte, error) { *s.read = true; return nil, nil }
func (s sealed) String() string                 { *s.read = true; return "" }

// TestRecord wants the texts of commands. The Client must not read an argument that could notice it.
func TestRecord(t *testing.T) {
	t.Parallel()
	read, key := false, "key"
	c := Script(nil)
	if _, err := send(t.Context(), c, "EVALSHA", sealed{&read}, 1, &key, int64(2), []byte("packed"), 1.5); err != nil {
		t.Fatal(err)
	}
	want := []string{"EVALSHA _ 1 key 2 _ _"}
	if got := c.Trips(); !slices.Equal(got, want) || read {
		t.Errorf("got %q, read %t; want %q, unread", got, read, want)
	}
}

// TestHook wants a hook to see a pipeline as one trip, and to take all its commands through the steps.
func TestHook(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(Start(t).quiet())
	defer client.Close()
	c := Script(nil)
	client.AddHook(c)
	pipeline := func() (values [2]int64, err error) {
		pipe := client.Pipeline()
		one, two := pipe.Incr(t.Context(), "one"), pipe.Incr(t.Context(), "two")
		_, err = pipe.Exec(t.Context())
		return [2]int64{one.Val(), two.Val()}, err
	}
	if err := client.Ping(t.Context()).Err(); err != nil || c.Count("ping") != 1 {
		t.Errorf("got %v, %q; want one PING", err, c.Trips())
	}
	for i, tt := range []struct {
		step   Step
		values [2]int64
		err    error
	}{
		{On("other", Fail(errScripted)), [2]int64{1, 1}, nil},
		{On("two", Fail(errScripted)), [2]int64{}, errScripted},
		{FailReply(errScripted), [2]int64{2, 2}, errScripted}, // with values, and with the error
		{Reply(int64(7)), [2]int64{7, 7}, nil},
		{Hold(), [2]int64{3, 3}, nil},
	} {
		c.Set(tt.step)
		c.Release(1)
		if values, err := pipeline(); values != tt.values || !errors.Is(err, tt.err) {
			t.Errorf("%d: got %v, %v; want %v, %v", i, values, err, tt.values, tt.err)
		}
	}
	if got := c.Count("incr one\nincr two"); got != 5 {
		t.Errorf("got %q, want 5 pipelines", c.Trips())
	}
}
