package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/internal/lab/nottest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// A server is a redis-server that this program started, and a client that no
// contestant uses.
type server struct {
	addr  string
	admin *redis.Client
	owner *nottest.Owner
}

// startServer starts a redis-server on a free port of the loopback address.
func startServer() (*server, error) {
	s := &server{owner: nottest.NewOwner()}
	if err := s.owner.Do(func() { s.addr = redistest.Start(s.owner).Addr() }); err != nil {
		s.owner.Close()
		return nil, err
	}
	s.admin = redis.NewClient(&redis.Options{Addr: s.addr, PoolSize: 1})
	s.owner.Cleanup(func() { _ = s.admin.Close() })
	return s, nil
}

func (s *server) close() { s.owner.Close() }

// flush deletes all keys. Scripts stay.
func (s *server) flush(ctx context.Context) error { return s.admin.FlushAll(ctx).Err() }

func (s *server) version(ctx context.Context) string {
	version, err := s.info(ctx, "server", "redis_version")
	if err != nil {
		return "unknown"
	}
	return version
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
