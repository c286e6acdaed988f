package main

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	echomiddleware "github.com/labstack/echo/v4/middleware"
	"golang.org/x/time/rate"
)

const echoFile = "middleware/rate_limiter.go"

// echoV4 forgets keys after a window.
var echoV4 = library{
	name: "labstack/echo RateLimiter", slug: "echo", module: "github.com/labstack/echo/v4", store: "memory",
	handler: func(_ *trial, q quota, by keyed) http.Handler {
		config := echomiddleware.RateLimiterConfig{Store: echomiddleware.NewRateLimiterMemoryStoreWithConfig(echomiddleware.RateLimiterMemoryStoreConfig{
			Rate: rate.Limit(q.perSecond()), Burst: q.requests, ExpiresIn: max(time.Second, q.window),
		})}
		if len(by) > 0 {
			config.IdentifierExtractor = func(c echo.Context) (string, error) { return c.Request().Header.Get(by[0]), nil }
		}
		e := echo.New()
		e.GET("/", echo.WrapHandler(served), echomiddleware.RateLimiterWithConfig(config))
		return e
	},
	absent: []string{"remaining", "wait", "burst"},
	shown:  []string{"forged"},
	says: map[string]quote{
		"":          {"RateLimiterMemoryStore is the built-in store implementation for RateLimiter", echoFile},
		"remaining": {"DenyHandler provides a handler to be called when RateLimiter denies access", echoFile},
		"wait":      {"DenyHandler provides a handler to be called when RateLimiter denies access", echoFile},
		"burst":     {"Stores for the rate limiter have to implement the Allow method", echoFile},
		"forged":    {"RealIP returns the client's network address based on `X-Forwarded-For` or `X-Real-IP` request header.", "context.go"},
	},
}
