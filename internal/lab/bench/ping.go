package main

import (
	"fmt"
	"time"
)

// pingConnections are the numbers of connections with which a proxy is measured.
var pingConnections = []int{1, 16, 256}

// pingEvery is the least time between two PINGs of all connections together. A
// closed loop of 256 connections would measure how fast the machine can write.
const pingEvery = 200 * time.Microsecond

// pings has the times of PINGs.
type pings struct {
	connections int
	count       int
	perSecond   float64
	median, p99 time.Duration
	cpu         time.Duration // of the proxy, per PING
}

func (p pings) String() string {
	return fmt.Sprintf("%s, %s PINGs per second: median %s µs, p99 %s µs, %s µs of the proxy's CPU each", plural(p.connections, "connection"),
		thousands(int(p.perSecond)), short(micros(p.median)), short(micros(p.p99)), short(micros(p.cpu)))
}
