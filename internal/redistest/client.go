package redistest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// This file is a client whose behaviour a test writes as a script of steps; steps.go has the steps.
//
// A trip is everything that a client sends at once: a command, or the commands of a pipeline. The first step wraps the
// second, and so on. The last step wraps the sending. A trip keeps the steps that were in force when it arrived.

// A Processor sends one command, as every client of go-redis does.
type Processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// A Client stands between a limiter and a client of go-redis. It records each trip and takes it through the steps.
// Any goroutine may call its methods.
//
// A test can use a Client in two ways. As the client itself, it hides the type of the client that it wraps, and it has
// no method Pipeline, so that each command is a trip of its own. As a hook (redis.Client.AddHook and the like), it keeps
// the type and sees each pipeline as one trip. A hook also sees the handshakes of connections.
type Client struct {
	send func(ctx context.Context, cmd redis.Cmder) error

	mu    sync.Mutex
	steps []Step
	trips []string
	away  int             // trips that have arrived and not returned
	held  []chan struct{} // one per held trip, the oldest first; closed when the trip may go on
	spare int             // trips that Release has let go before they arrived
	open  bool            // nothing is held
}

var _ redis.Hook = (*Client)(nil)

// Script returns a client that sends the commands that pass the steps to next. If next is nil, each command that passes
// is answered with the zero value.
func Script(next Processor, steps ...Step) *Client {
	c := &Client{send: func(context.Context, redis.Cmder) error { return nil }}
	if next != nil {
		c.send = next.Process
	}
	c.Set(steps...)
	return c
}

// Set replaces the steps. Trips that have arrived keep the old ones, and trips that are held stay held until Release or
// Open. Without steps, everything passes.
func (c *Client) Set(steps ...Step) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps, c.spare, c.open = steps, 0, false
}

// compose returns the handler that takes a trip through the steps and on to last.
func compose(steps []Step, last handler) handler {
	for _, step := range slices.Backward(steps) {
		next := last
		last = func(ctx context.Context, t *trip) error { return step(ctx, t, next) }
	}
	return last
}

// Forget removes the steps, lets held trips go on, and empties the record.
func (c *Client) Forget() {
	c.Open()
	c.Set()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trips = nil
}

// Process implements the interface of clients.
func (c *Client) Process(ctx context.Context, cmd redis.Cmder) error {
	return c.ProcessHook(c.send)(ctx, cmd)
}

// DialHook implements redis.Hook.
func (c *Client) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (c *Client) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return c.run(ctx, []redis.Cmder{cmd}, func(ctx context.Context, cmds []redis.Cmder) error {
			return next(ctx, cmds[0])
		})
	}
}

// ProcessPipelineHook implements redis.Hook.
func (c *Client) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { return c.run(ctx, cmds, next) }
}

// run records a trip and takes it through the steps.
func (c *Client) run(ctx context.Context, cmds []redis.Cmder, send redis.ProcessPipelineHook) error {
	t := &trip{Client: c, cmds: cmds, send: send, text: textOf(cmds)}
	c.mu.Lock()
	steps := c.steps
	c.trips = append(c.trips, t.text)
	c.away++
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.away--
	}()
	return compose(steps, func(ctx context.Context, t *trip) error { return t.send(ctx, t.cmds) })(ctx, t)
}

// hold returns when the trip may go on, even if its context has ended.
func (c *Client) hold() {
	c.mu.Lock()
	if c.open || c.spare > 0 {
		c.spare = max(0, c.spare-1)
		c.mu.Unlock()
		return
	}
	released := make(chan struct{})
	c.held = append(c.held, released)
	c.mu.Unlock()
	<-released
}

// Release lets the n oldest held trips go on. If fewer are held, it lets the next ones go as soon as they arrive.
func (c *Client) Release(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ; n > 0 && len(c.held) > 0; n-- {
		close(c.held[0])
		c.held = c.held[1:]
	}
	c.spare += n
}

// Open lets all held trips go on, and lets later trips pass without a hold until Set.
func (c *Client) Open() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, released := range c.held {
		close(released)
	}
	c.held, c.open = nil, true
}

// Held returns how many trips are held now.
func (c *Client) Held() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.held)
}

// UntilHeld waits until at least n trips are held at the same time.
func (c *Client) UntilHeld(tb testing.TB, n int) {
	tb.Helper()
	Until(tb, fmt.Sprintf("%d trips are held", n), func() bool { return c.Held() >= n })
}

// Idle reports whether every trip has returned.
func (c *Client) Idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.away == 0
}

// Trips returns the texts of all trips since Script or Forget, in the order of their arrival. A text has a line per
// command: its arguments, separated by blanks. An argument that is neither text, nor an integer, nor a Stringer after
// the first argument appears as "_". The Client does not read such an argument, because a limiter can notice that.
func (c *Client) Trips() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.trips)
}

// Count returns how many of the Trips contain a text, in any letter case. Every trip contains "".
func (c *Client) Count(text string) (n int) {
	for _, t := range c.Trips() {
		if contains(t, text) {
			n++
		}
	}
	return n
}

func contains(trip, text string) bool {
	return strings.Contains(strings.ToLower(trip), strings.ToLower(text))
}

func textOf(cmds []redis.Cmder) string {
	lines := make([]string, len(cmds))
	for i, cmd := range cmds {
		words := make([]string, len(cmd.Args()))
		for j, arg := range cmd.Args() {
			words[j] = word(arg)
			// Argument 1 may be the name of a script. A limiter counts a script as sent when its name is read.
			if key, ok := arg.(fmt.Stringer); ok && j > 1 {
				words[j] = key.String()
			}
		}
		lines[i] = strings.Join(words, " ")
	}
	return strings.Join(lines, "\n")
}

func word(arg any) string {
	switch arg := arg.(type) {
	case string:
		return arg
	case *string:
		return *arg
	case int:
		return strconv.Itoa(arg)
	case int64:
		return strconv.FormatInt(arg, 10)
	default:
		return "_"
	}
}
