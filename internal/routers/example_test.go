// The lines for gin and echo, as README shows them.

package routers

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/labstack/echo/v5"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

func Example_gin() {
	limited := perRoute()
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.Use(func(c *gin.Context) {
		c.Request.Pattern = c.FullPath() // for keyfunc.Route
		served := false
		limited.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			served, c.Request = true, r
			c.Next()
			w.WriteHeader(c.Writer.Status()) // for ChargeIf
		})).ServeHTTP(c.Writer, c.Request)
		if !served {
			c.Abort()
		}
	})
	router.GET("/orders/:id", func(c *gin.Context) { c.String(200, "order") })
	getTwice(router)
	// Output:
	// 200 order
	// 429
}

func Example_echo() {
	limited := perRoute()
	router := echo.New()
	router.Use(echo.WrapMiddleware(limited.Handler))
	router.GET("/orders/:id", func(c *echo.Context) error { return c.String(200, "order") })
	getTwice(router)
	// Output:
	// 200 order
	// 429
}

// perRoute admits one request per hour to each route.
func perRoute() *ratelimit.Middleware {
	opts := &ratelimit.Options{Denied: func(w http.ResponseWriter, _ *http.Request, v ratelimit.Verdict) { w.WriteHeader(v.Status) }}
	return ratelimit.Must(ratelimit.New(algorithms.NewMemory(nil), opts, ratelimit.Policy{
		Name: "orders", Key: keyfunc.Join(keyfunc.IP(nil), keyfunc.Route()), Limit: algorithms.TokenBucket(1, time.Hour),
	}))
}

func getTwice(h http.Handler) {
	for _, path := range []string{"/orders/1", "/orders/2"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		fmt.Println(w.Code, w.Body)
	}
}
