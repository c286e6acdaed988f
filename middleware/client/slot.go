package client

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// renewals is how often a unit is renewed before its hold would end.
const renewals = 3

// A held is a unit of a Concurrent limit that a request holds until its response body is
// read to its end or closed. nil holds nothing.
type held struct {
	t     *Transport
	ctx   context.Context
	lane  *lane
	taken algorithms.Check

	mu    sync.Mutex // also makes a renewal end before the return, which it would undo
	ended bool
	timer *time.Timer
}

// keep holds a unit that was taken, if its limit is Concurrent.
func (x *exchange) keep(taken algorithms.Check) *held {
	if !x.t.o.Limit.Algorithm().Concurrent() {
		return nil
	}
	h := &held{t: x.t, ctx: context.WithoutCancel(x.ctx), lane: x.lane, taken: taken}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.timer = time.AfterFunc(x.t.o.Limit.Window()/renewals, h.renew)
	return h
}

func (h *held) renew() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return
	}
	c := h.taken
	c.Op = algorithms.Renew
	_ = h.t.o.Limiter.Allow(h.ctx, []algorithms.Check{c}) // the next renewal tries again
	h.timer.Reset(h.t.o.Limit.Window() / renewals)
}

// release returns the unit, once, and wakes the first waiting request.
func (h *held) release() {
	if h == nil {
		return
	}
	h.mu.Lock()
	ended := h.ended
	h.ended = true
	h.timer.Stop()
	h.mu.Unlock()
	if ended {
		return
	}
	h.t.giveBack(h.ctx, h.taken)
	h.lane.returned()
}

// until holds the unit until the body of resp is read to its end or closed. A response without a body has
// ended.
func (h *held) until(resp *http.Response) {
	if h == nil {
		return
	}
	body := heldBody{resp.Body, h}
	w, upgraded := resp.Body.(io.Writer) // of 101 Switching Protocols
	switch {
	case resp.Body == http.NoBody:
		h.release()
	case upgraded:
		resp.Body = struct {
			heldBody
			io.Writer
		}{body, w}
	default:
		resp.Body = body
	}
}

// A heldBody is a body whose end returns a unit.
type heldBody struct {
	io.ReadCloser
	h *held
}

func (b heldBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.h.release()
	}
	return n, err
}

func (b heldBody) Close() error {
	err := b.ReadCloser.Close()
	b.h.release()
	return err
}
