package main

import (
	"net/http"
	"sync"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/adaptor"
	fiberlimiter "github.com/gofiber/fiber/v3/middleware/limiter"
)

const fiberPage = "docs/middleware/limiter.md"

var fiberLocal = quote{"This module does not share state with other processes/servers by default.", fiberPage}

var fiberV3 = library{
	name: "gofiber/fiber limiter", slug: "fiber", module: "github.com/gofiber/fiber/v3", store: "memory",
	open: func(_ *trial, q quota) (*limiter, error) {
		byClient := fiberlimiter.Config{KeyGenerator: func(c fiber.Ctx) string { return c.Get(clientHeader) }}
		l := overHTTP(fiberBy(q, byClient, func(fiber.Ctx) error { return nil }))
		l.borrow = fiberBorrow(q)
		return l, nil
	},
	byAddress: func(_ *trial, q quota, next http.Handler) (http.Handler, error) {
		return fiberBy(q, fiberlimiter.Config{}, adaptor.HTTPHandler(next)), nil
	},
	absent: []string{"several", "burst", "instances", "outage", "outage-limit"},
	says: map[string]quote{
		"several":      {"Maximum number of recent connections within `Expiration` seconds before sending a 429 response.", fiberPage},
		"wait":         {"When set to `true`, the middleware omits rate limit headers (`X-RateLimit-*` and `Retry-After`).", fiberPage},
		"burst":        {"Maximum number of recent connections within `Expiration` seconds before sending a 429 response.", fiberPage},
		"instances":    fiberLocal,
		"outage":       fiberLocal,
		"outage-limit": fiberLocal,
		"refund":       {"When set to `true`, requests with status code ≥ 400 aren't counted.", fiberPage},
	},
}

func fiberBy(q quota, config fiberlimiter.Config, next fiber.Handler) http.Handler {
	config.Max, config.Expiration = q.requests, q.window
	app := fiber.New()
	app.Use(fiberlimiter.New(config))
	app.Get("/", next)
	return adaptor.FiberApp(app)
}

// fiberBorrow takes units with requests that are under way, and gives them back by letting requests fail.
func fiberBorrow(q quota) func(string, int) (bool, func(int) error, error) {
	failing := make(chan bool)
	begun := make(chan struct{})
	config := fiberlimiter.Config{SkipFailedRequests: true, KeyGenerator: func(c fiber.Ctx) string { return c.Get(clientHeader) }}
	h := fiberBy(q, config, func(fiber.Ctx) error {
		begun <- struct{}{}
		if <-failing {
			return fiber.ErrInternalServerError
		}
		return nil
	})
	return func(key string, n int) (bool, func(int) error, error) {
		taken := 0
		var all sync.WaitGroup
		for range n {
			denied := make(chan struct{})
			all.Go(func() {
				if a, err := ask(h, clientHeader, key); err == nil && !a.allowed {
					close(denied)
				}
			})
			select {
			case <-begun:
				taken++
			case <-denied:
			}
		}
		return taken == n, func(back int) error {
			for i := range taken {
				failing <- i < back
			}
			all.Wait()
			return nil
		}, nil
	}
}
