// The clients through which commands go.
//
// The limiter chooses the timeouts of a redis.Client: WithTimeout returns a client
// of the same pool. In go-redis 9.23 that client has lost the hooks of the
// program's client, which trace and count commands. So commands pass through the
// program's client, and its last hook diverts them:
//
//	program's client ─> hooks of the program ─> divert ─> client with timeouts
//
// A timeout alone does not bound a trip. When a managed Redis announces maintenance,
// go-redis relaxes the timeouts of the connection to 10 s. So each trip also has a
// context with a deadline, which that client obeys.
//
// Hooks that the program adds later come after divert, and do not see the commands.

package batch

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Client is a client of go-redis.
type Client interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// A sender sends commands through a client.
type sender struct {
	client Client
	timed  *redis.Client // to which divert sends the commands; nil: the client sends them
	opaque bool          // the client does not show that it is one of go-redis: it may send the text of a command
}

// A tripContext is the context of one trip through a client with timeouts. It has
// a deadline and no timer: go-redis ends each read and write at the deadline or
// at the client's timeout, whichever is earlier.
type tripContext struct {
	context.Context
	to  *redis.Client
	end time.Time
}

// Deadline implements [context.Context].
func (c *tripContext) Deadline() (time.Time, bool) { return c.end, true }

// Value implements [context.Context].
func (c *tripContext) Value(key any) any {
	if key == (divert{}) {
		return c.to
	}
	return c.Context.Value(key)
}

// A pipeliner is a client that can send several commands at once.
type pipeliner interface{ Pipeline() redis.Pipeliner }

// newSender returns a sender. If timeout is not 0, a trip through a redis.Client
// ends then.
func newSender(c Client, timeout time.Duration) *sender {
	s := &sender{client: c, opaque: PoolOf(c) == 0}
	if rdb, ok := c.(*redis.Client); ok && timeout > 0 {
		s.timed = rdb.WithTimeout(timeout)
		s.timed.Options().ContextTimeoutEnabled = true // these options are a copy
	}
	return s
}

// trip sends commands, in one round trip if the client has pipelines. Afterwards
// each command has its own error.
func (s *sender) trip(ctx context.Context, commands []redis.Cmder) {
	if s.timed != nil {
		end, bounded := ctx.Deadline()
		if !bounded {
			end = time.Now().Add(s.timed.Options().ReadTimeout)
		}
		ctx = &tripContext{Context: ctx, to: s.timed, end: end}
	}
	if c, ok := s.client.(pipeliner); ok && len(commands) > 1 {
		_ = pipe(ctx, c, commands)
		return
	}
	for _, cmd := range commands {
		if err := s.client.Process(ctx, cmd); err != nil && cmd.Err() == nil {
			cmd.SetErr(err)
		}
	}
}

func pipe(ctx context.Context, c pipeliner, commands []redis.Cmder) error {
	pipeline := c.Pipeline()
	for _, cmd := range commands {
		_ = pipeline.Process(ctx, cmd) // queues
	}
	_, err := pipeline.Exec(ctx)
	return err
}

// divert is a hook, and the key of a context's value: the client that is to send
// the command.
type divert struct{}

// DialHook implements [redis.Hook].
func (divert) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements [redis.Hook].
func (divert) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if to, _ := ctx.Value(divert{}).(*redis.Client); to != nil {
			return to.Process(ctx, cmd)
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements [redis.Hook].
func (divert) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		if to, _ := ctx.Value(divert{}).(*redis.Client); to != nil {
			return pipe(ctx, to, commands)
		}
		return next(ctx, commands)
	}
}

// endsInTime reports whether no operation of a client outlasts its timeouts and
// contexts. Code of the program may.
func endsInTime(o *redis.Options) bool {
	return o.CredentialsProvider == nil && o.CredentialsProviderContext == nil && o.StreamingCredentialsProvider == nil && o.OnConnect == nil
}

// PoolOf returns the size of a client's pool; 0 if the client does not show it.
func PoolOf(client Client) int {
	switch c := client.(type) {
	case interface{ Options() *redis.Options }:
		return c.Options().PoolSize
	case interface{ Options() *redis.ClusterOptions }:
		return c.Options().PoolSize
	}
	return 0
}
