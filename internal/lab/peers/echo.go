package main

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	echomiddleware "github.com/labstack/echo/v4/middleware"
	"golang.org/x/time/rate"
)

const echoFile = "middleware/rate_limiter.go"

var echoStore = quote{"RateLimiterMemoryStore is the built-in store implementation for RateLimiter", echoFile}

var echoV4 = library{
	name: "labstack/echo RateLimiter", slug: "echo", module: "github.com/labstack/echo/v4", store: "memory",
	open: func(_ *trial, q quota) (*limiter, error) {
		config := echomiddleware.RateLimiterConfig{
			IdentifierExtractor: func(c echo.Context) (string, error) { return c.Request().Header.Get(clientHeader), nil },
		}
		return overHTTP(echoBy(q, config, served)), nil
	},
	byAddress: func(_ *trial, q quota, next http.Handler) (http.Handler, error) {
		return echoBy(q, echomiddleware.RateLimiterConfig{}, next), nil
	},
	absent: []string{"several", "remaining", "wait", "burst", "instances", "outage", "outage-limit", "forged", "refund"},
	shown:  []string{"forged"},
	says: map[string]quote{
		"":          echoStore,
		"remaining": {"DenyHandler provides a handler to be called when RateLimiter denies access", echoFile},
		"wait":      {"DenyHandler provides a handler to be called when RateLimiter denies access", echoFile},
		"burst":     {"Stores for the rate limiter have to implement the Allow method", echoFile},
		"refund":    {"Stores for the rate limiter have to implement the Allow method", echoFile},
		"forged":    {"RealIP returns the client's network address based on `X-Forwarded-For` or `X-Real-IP` request header.", "context.go"},
	},
}

// echoBy forgets keys after a window.
func echoBy(q quota, config echomiddleware.RateLimiterConfig, next http.Handler) http.Handler {
	config.Store = echomiddleware.NewRateLimiterMemoryStoreWithConfig(echomiddleware.RateLimiterMemoryStoreConfig{
		Rate: rate.Limit(q.perSecond()), Burst: q.requests, ExpiresIn: max(time.Second, q.window),
	})
	e := echo.New()
	e.GET("/", echo.WrapHandler(next), echomiddleware.RateLimiterWithConfig(config))
	return e
}
