package main

import (
	"net/http"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/adaptor"
	fiberlimiter "github.com/gofiber/fiber/v3/middleware/limiter"
)

const fiberPage = "docs/middleware/limiter.md"

var fiberV3 = library{
	name: "gofiber/fiber limiter", slug: "fiber", module: "github.com/gofiber/fiber/v3", store: "memory",
	handler: func(_ *trial, q quota, by keyed) http.Handler {
		config := fiberlimiter.Config{Max: q.requests, Expiration: q.window}
		if len(by) > 0 {
			config.KeyGenerator = func(c fiber.Ctx) string { return c.Get(by[0]) }
		}
		app := fiber.New()
		app.Use(fiberlimiter.New(config))
		app.Get("/", adaptor.HTTPHandler(served))
		return adaptor.FiberApp(app)
	},
	absent: []string{"burst"},
	says: map[string]quote{
		"wait":      {"When set to `true`, the middleware omits rate limit headers (`X-RateLimit-*` and `Retry-After`).", fiberPage},
		"burst":     {"Maximum number of recent connections within `Expiration` seconds before sending a 429 response.", fiberPage},
		"instances": {"This module does not share state with other processes/servers by default.", fiberPage},
	},
}
