package redistest

import (
	"bytes"
	"strings"
	"time"
)

// A Fault says what a Proxy does to requests and their replies. The zero value is Pass.
type Fault struct {
	mode  mode
	delay time.Duration // of Delay and DelayRequests
	rate  int           // of Trickle, in bytes per second
	text  string        // in lower case; empty: all requests
}

type mode int

const (
	pass mode = iota
	delay
	delayRequests
	trickle
	swallow
	cut
	blackHole
	unreachable
	refuse
)

// Pass passes everything on.
func Pass() Fault { return Fault{} }

// Delay delivers a reply no earlier than d after the request.
func Delay(d time.Duration) Fault { return Fault{mode: delay, delay: d} }

// DelayRequests delivers a request to the server only after d.
func DelayRequests(d time.Duration) Fault { return Fault{mode: delayRequests, delay: d} }

// Trickle delivers replies byte by byte, n bytes per second; n is at least 1.
func Trickle(n int) Fault { return Fault{mode: trickle, rate: max(n, 1)} }

// Swallow lets the server execute a request, and drops the reply. It also drops all later replies on that connection,
// because the client would take the next one for the lost reply.
func Swallow() Fault { return Fault{mode: swallow} }

// Cut lets the server execute a request, and closes the connection when it replies. The client sees the end of the
// stream in place of the reply.
func Cut() Fault { return Fault{mode: cut} }

// BlackHole drops requests before the server sees them. It also drops everything later on that connection. New
// connections are accepted.
func BlackHole() Fault { return Fault{mode: blackHole} }

// Unreachable is BlackHole, and new connections are neither accepted nor refused: a dial ends by its own timeout. It
// works on Linux only, where a listener with a full queue drops new arrivals.
func Unreachable() Fault { return Fault{mode: unreachable} }

// Refuse closes all connections and refuses new ones, as if no process listened. Containing does not apply.
func Refuse() Fault { return Fault{mode: refuse} }

// Containing limits f to the requests that contain text, in any letter case. All other requests pass. With "evalsha",
// for example, the handshake of a client passes.
func (f Fault) Containing(text string) Fault {
	f.text = strings.ToLower(text)
	return f
}

func (f Fault) concerns(request []byte) bool {
	return f.mode != pass && bytes.Contains(bytes.ToLower(request), []byte(f.text))
}

// A door says what happens to new connections.
type door int

const (
	closed door = iota // they are refused; also before the start and after Close
	open               // they are accepted
	full               // they are neither accepted nor refused
)

func (f Fault) door() door {
	switch f.mode {
	case refuse:
		return closed
	case unreachable:
		return full
	default:
		return open
	}
}
