package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/internal/redistest"
)

// A server is a redis-server of ours, and a connection that no contestant uses.
type server struct {
	addr  string
	admin *redis.Client
	owner *redistest.Owner
}

// startServer starts a redis-server on a free port of the loopback address.
func startServer() (*server, error) {
	s := &server{owner: redistest.NewOwner()}
	if err := s.owner.Do(func() { s.addr = redistest.Start(s.owner).Addr() }); err != nil {
		s.owner.Close()
		return nil, err
	}
	s.admin = redis.NewClient(&redis.Options{Addr: s.addr, PoolSize: 1})
	s.owner.Cleanup(func() { _ = s.admin.Close() })
	return s, nil
}

func (s *server) close() { s.owner.Close() }

// flush forgets all keys; scripts stay.
func (s *server) flush(ctx context.Context) error { return s.admin.FlushAll(ctx).Err() }

func (s *server) version(ctx context.Context) string {
	version, err := s.info(ctx, "server", "redis_version")
	if err != nil {
		return "unknown"
	}
	return version
}

// A usage is what a server has done since it started.
type usage struct {
	cpu      float64 // µs
	commands float64
}

// usageCommands is how many commands it takes to ask for the usage.
const usageCommands = 3

func (s *server) usage(ctx context.Context) (u usage, err error) {
	for _, field := range []string{"used_cpu_user", "used_cpu_sys"} {
		seconds, err := s.number(ctx, "cpu", field)
		if err != nil {
			return u, err
		}
		u.cpu += seconds * 1e6
	}
	u.commands, err = s.number(ctx, "stats", "total_commands_processed")
	return u, err
}

// usedMemory returns the bytes that the server has allocated.
func (s *server) usedMemory(ctx context.Context) (float64, error) {
	return s.number(ctx, "memory", "used_memory")
}

func (s *server) number(ctx context.Context, section, field string) (float64, error) {
	text, err := s.info(ctx, section, field)
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(text, 64)
}

func (s *server) info(ctx context.Context, section, field string) (string, error) {
	text, err := s.admin.Info(ctx, section).Result()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("INFO %s has no %s", section, field)
}

// A stage is where a measure takes place. What contestants open ends with it.
type stage struct {
	server *server
	quick  bool
	opened []func()
}

func (s *stage) onClose(f func()) { s.opened = append(s.opened, f) }

func (s *stage) close() {
	for i := len(s.opened) - 1; i >= 0; i-- {
		s.opened[i]()
	}
	s.opened = nil
}

// client returns a new client, with go-redis's defaults but for what adjust
// changes.
func (s *stage) client(adjust ...func(*redis.Options)) *redis.Client {
	o := &redis.Options{Addr: s.server.addr}
	for _, f := range adjust {
		f(o)
	}
	client := redis.NewClient(o)
	s.onClose(func() { _ = client.Close() })
	return client
}

// usageIf returns the usage of the server, or none if it is not in use.
func (s *stage) usageIf(ctx context.Context, onServer bool) (usage, error) {
	if !onServer {
		return usage{}, nil
	}
	return s.server.usage(ctx)
}
