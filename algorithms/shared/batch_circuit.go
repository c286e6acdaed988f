package algorithms

import (
	"context"
	"errors"
	"time"
)

var errTaken = errors.New("algorithms: the Redis serves another Fallback already")

// useCircuit implements circuitUser.
func (r *Redis) useCircuit(c *circuit, deadline time.Duration) error {
	if !r.circuit.CompareAndSwap(nil, c) {
		return errTaken
	}
	r.timeout = min(r.timeout, deadline)
	return nil
}

// begin asks the circuit, if there is one, whether the batch may be sent.
func (b *batch) begin(r *Redis) error {
	c := r.circuit.Load()
	if c == nil {
		return nil
	}
	end, err := c.begin()
	b.end = end
	return err
}

// A reloader is a client that knows which node has which slots. Go-redis's
// looks again only every minute, or when a node sends it to another: not when
// one that is gone does not answer.
type reloader interface{ ReloadState(context.Context) }

// tell tells the circuit the outcome of the batch, once, and reports whether it
// was told now.
func (b *batch) tell(r *Redis, err error) (now bool) {
	if !b.told.CompareAndSwap(false, true) {
		return false
	}
	if client, ok := r.client.(reloader); ok && troubleOf(err).effect == effectFailure {
		client.ReloadState(context.Background()) // does not wait
	}
	if b.end != nil {
		b.end(err)
	}
	return true
}

// outcome returns what the scripts' errors say of Redis: one that it is to
// blame for, if there is one.
func (b *batch) outcome() (err error) {
	for i := range b.scripts {
		if e := b.scripts[i].cmd.Err(); err == nil || troubleOf(e).effect == effectFailure {
			err = e
		}
	}
	return err
}
