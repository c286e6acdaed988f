// fiber's limiter: requests that fail after their window has ended make the next window larger.
package main

import (
	"fmt"
	"net/http/httptest"
	"os"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/limiter"
)

func main() {
	app, admitted := fiber.New().Use(limiter.New(limiter.Config{Max: 10, Expiration: 2 * time.Second, SkipFailedRequests: true})).(*fiber.App), 0
	app.Get("/slow", func(fiber.Ctx) error { time.Sleep(5 * time.Second); return fiber.ErrInternalServerError })
	app.Get("/", func(fiber.Ctx) error { return nil })
	for range 5 {
		go func() { _, _ = app.Test(httptest.NewRequest("GET", "/slow", nil), fiber.TestConfig{Timeout: 0}) }()
	}
	time.Sleep(5500 * time.Millisecond)
	for range 20 {
		if res, err := app.Test(httptest.NewRequest("GET", "/", nil)); err == nil && res.StatusCode == 200 {
			admitted++
		}
	}
	if fmt.Println(admitted, "of 20 requests were admitted at once, at 10 per 2 s"); admitted > 10 {
		os.Exit(1)
	}
}
