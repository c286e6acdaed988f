package redistest

import (
	"bytes"
	"strings"
	"time"
)

// A Fault is what a Proxy does to requests and their replies. The zero value is Pass.
type Fault struct {
	mode  mode
	delay time.Duration // of Delay and DelayRequests
	rate  int           // of Trickle, in bytes per second
	text  string        // in lower case; empty: all requests
	nth   int           // of the requests that contain the text; 0: all
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

// Pass does no harm.
func Pass() Fault { return Fault{} }

// Delay delivers a reply d after the request at the earliest.
func Delay(d time.Duration) Fault { return Fault{mode: delay, delay: d} }

// DelayRequests delivers a request to the server only after d.
func DelayRequests(d time.Duration) Fault { return Fault{mode: delayRequests, delay: d} }

// Trickle delivers replies byte by byte, n bytes per second; n is at least 1.
func Trickle(n int) Fault { return Fault{mode: trickle, rate: max(n, 1)} }

// Swallow lets the server execute a request, but the client never hears of it, nor anything else on that connection: it
// would take a later reply for the lost one.
func Swallow() Fault { return Fault{mode: swallow} }

// Cut lets the server execute a request, and closes the connection when it replies. The client sees the end of the
// stream in place of the reply.
func Cut() Fault { return Fault{mode: cut} }

// BlackHole makes requests vanish before the server sees them, and with them everything later on that connection.
// New connections are accepted.
func BlackHole() Fault { return Fault{mode: blackHole} }

// Unreachable is BlackHole where new connections are neither accepted nor refused: a dial ends by its own timeout.
// It is for Linux, where a listener whose queue is full drops new arrivals.
func Unreachable() Fault { return Fault{mode: unreachable} }

// Refuse closes all connections and refuses new ones, as a machine does on which nobody listens. No filter applies.
func Refuse() Fault { return Fault{mode: refuse} }

// Containing returns f for those requests only that contain text, in any case. All others pass, such as the handshake
// of a client when text is "evalsha".
func (f Fault) Containing(text string) Fault {
	f.text = strings.ToLower(text)
	return f
}

// Nth returns f for the n-th request only that contains the text. It counts from 1, over all connections, from the call
// of Proxy.Set on.
func (f Fault) Nth(n int) Fault {
	f.nth = n
	return f
}

func (f Fault) concerns(request []byte) bool {
	return f.mode != pass && bytes.Contains(bytes.ToLower(request), []byte(f.text))
}

// A door says what becomes of new connections.
type door int

const (
	closed door = iota // they are refused; what a Proxy begins and ends with
	open               // they are accepted
	full               // they wait in vain
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
