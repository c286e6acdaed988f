package main

import (
	"context"
	"fmt"
	"runtime"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/lab/nottest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// A server is a redis-server that this program started. No contestant uses its Client.
type server struct {
	*nottest.Owner
	*redistest.Server
}

// startServer starts a redis-server on a free port of the loopback address.
func startServer() *server {
	owner := nottest.NewOwner()
	return &server{owner, redistest.Start(owner)}
}

// number returns a figure of INFO.
func (s *server) number(ctx context.Context, section, field string) float64 {
	for _, fields := range nottest.Must(s.Client().InfoMap(ctx, section).Result()) {
		if text, ok := fields[field]; ok {
			return nottest.Must(strconv.ParseFloat(text, 64))
		}
	}
	s.Fatalf("INFO %s has no %s", section, field)
	return 0
}

// A stage has the server of a measure. The end of its Owner closes everything that contestants open.
type stage struct {
	*nottest.Owner
	server *server
	proxy  *proxy // between the contestants and the server; nil: none
	quick  bool
	shared []*shared.Limiter // of the contestants
}

// addr returns the address at which contestants reach the server.
func (s *stage) addr() string {
	if s.proxy != nil {
		return s.proxy.addr
	}
	return s.server.Addr()
}

// client returns a new client, with go-redis's defaults except for the changes
// that adjust makes.
func (s *stage) client(adjust ...func(*redis.Options)) *redis.Client {
	o := &redis.Options{Addr: s.addr()}
	for _, f := range adjust {
		f(o)
	}
	client := redis.NewClient(o)
	s.Cleanup(func() { _ = client.Close() })
	return client
}

// elsewhere returns how many decisions Redis did not make. A starved machine opens
// circuits, and then a program measures something else.
func (s *stage) elsewhere() (n uint64) {
	for _, l := range s.shared {
		b := l.Stats().Fallback
		n += b.Local + b.Passed + b.Refused
	}
	return n
}

// decidedRight returns an error if more than a thousandth of the checks were decided
// elsewhere.
func decidedRight(checks int, elsewhere uint64) error {
	if elsewhere*1000 > uint64(checks) {
		return fmt.Errorf("%d of %d decisions were made elsewhere: is the machine busy?", elsewhere, checks)
	}
	return nil
}

// A usage sums up the work of the processes since they started.
type usage struct {
	elsewhere      uint64  // decisions
	server         float64 // the server's CPU, µs
	mallocs, bytes uint64  // on our heap
}

// usage returns the usage of this process. It includes the server if onServer is
// set.
func (s *stage) usage(ctx context.Context, onServer bool) (u usage) {
	if onServer {
		for _, field := range []string{"used_cpu_user", "used_cpu_sys"} {
			u.server += s.server.number(ctx, "cpu", field) * 1e6
		}
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	u.mallocs, u.bytes, u.elsewhere = stats.Mallocs, stats.TotalAlloc, s.elsewhere()
	return u
}
