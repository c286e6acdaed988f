//go:build steps

// fiber's limiter: a clock steps back an hour. Run: go run ./peers -stepped fiber-clock
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
	app := fiber.New()
	app.Use(limiter.New(limiter.Config{Max: 10, Expiration: time.Second}))
	for range 11 {
		_, _ = app.Test(httptest.NewRequest("GET", "/", nil))
	}
	time.SetStep(-3600)
	time.Sleep(5 * time.Second)
	res, err := app.Test(httptest.NewRequest("GET", "/", nil))
	if fmt.Println("5 s after the step, at 10 per second:", res.StatusCode, err); res.StatusCode == 429 {
		os.Exit(1)
	}
}
