package repro

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/didip/tollbooth/v8"
	"github.com/go-chi/httprate"
	"github.com/gofiber/fiber/v3"
	fiberlimiter "github.com/gofiber/fiber/v3/middleware/limiter"
	"github.com/redis/go-redis/v9"
	"github.com/sethvargo/go-limiter/httplimit"
	"github.com/sethvargo/go-limiter/memorystore"

	"github.com/penstock-go/penstock/internal/lab/nottest"
)

// ask sends a request with a key of two parts.
func ask(h http.Handler, tenant, user string) *httptest.ResponseRecorder {
	r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
	r.Header.Set("Tenant", tenant)
	r.Header.Set("User", user)
	h.ServeHTTP(w, r)
	return w
}

// httprate: a client that has used 5 per 10 s is admitted again long before Retry-After.
func httprateWait(*redis.Client) (string, bool) {
	h := httprate.LimitBy(5, 10*time.Second, httprate.Key("client"))(http.NotFoundHandler())
	time.Sleep(7 * time.Second) // into the window
	return waitFor5s(h)
}

// waitFor5s uses up a limit of 5 per 10 s, and asks again after 5 s.
func waitFor5s(h http.Handler) (string, bool) {
	for range 5 {
		ask(h, "", "")
	}
	told := ask(h, "", "").Header().Get("Retry-After")
	time.Sleep(5 * time.Second)
	status := ask(h, "", "").Code
	return fmt.Sprintf("told to wait %s s; after 5 s the answer is %d", told, status), told == "10" && status != http.StatusTooManyRequests
}

// httprate: JoinKeys lets two clients share a count.
func httprateKeys(*redis.Client) (string, bool) {
	return httprateJoins()
}

func httprateJoins(options ...httprate.Option) (string, bool) {
	tenant := func(r *http.Request) (string, error) { return r.Header.Get("Tenant"), nil }
	user := func(r *http.Request) (string, error) { return r.Header.Get("User"), nil }
	h := httprate.LimitBy(1, time.Hour, httprate.JoinKeys(tenant, user), options...)(http.NotFoundHandler())
	first, second := ask(h, "a:b", "c").Code, ask(h, "a", "b:c").Code
	return fmt.Sprintf("first request of a:b and c: %d, first request of a and b:c: %d", first, second), second == http.StatusTooManyRequests
}

// tollbooth: keys are joined by a pipe.
func tollboothKeys(*redis.Client) (string, bool) {
	l := tollbooth.NewLimiter(1, nil)
	first, second := tollbooth.LimitByKeys(l, []string{"a|b", "c"}), tollbooth.LimitByKeys(l, []string{"a", "b|c"})
	return fmt.Sprintf("first request of a|b and c denied: %t, first request of a and b|c denied: %t", first != nil, second != nil), second != nil
}

// go-limiter: Retry-After ends in UTC, where an HTTP-date (RFC 9110, section 5.6.7) ends in GMT.
func goLimiterWait(*redis.Client) (string, bool) {
	store := nottest.Must(memorystore.New(nil)) // one per second
	h := nottest.Must(httplimit.NewMiddleware(store, httplimit.IPKeyFunc())).Handle(http.NotFoundHandler())
	w := ask(h, "", "")
	for w.Code != http.StatusTooManyRequests {
		w = ask(h, "", "")
	}
	after := w.Header().Get("Retry-After")
	_, err := http.ParseTime(after)
	return fmt.Sprint("Retry-After: ", after, ", which http.ParseTime does not read"), err != nil
}

// fiber: a clock steps back an hour.
func fiberClock(*redis.Client) (string, bool) {
	app := fiber.New()
	app.Use(fiberlimiter.New(fiberlimiter.Config{Max: 10, Expiration: time.Second}))
	for range 11 {
		nottest.Must(app.Test(httptest.NewRequest(http.MethodGet, "/", nil)))
	}
	SetStep(-3600)
	time.Sleep(5 * time.Second)
	res := nottest.Must(app.Test(httptest.NewRequest(http.MethodGet, "/", nil)))
	return fmt.Sprint("5 s after the step, at 10 per second: ", res.StatusCode), res.StatusCode == http.StatusTooManyRequests
}
