package headers_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/penstock-go/penstock/headers"
)

// A client reads a denial. The response names a wait, and the limit that denied.
func ExampleRead() {
	h := http.Header{}
	h.Set("RateLimit", `"peruser";r=0;t=22`)
	h.Set("RateLimit-Policy", `"peruser";q=100;w=60`)
	h.Set("Retry-After", "22")

	fields := headers.Read(http.StatusTooManyRequests, h, time.Now())
	fmt.Println(fields.Wait, fields.From)
	for _, l := range fields.Limits {
		fmt.Println(l.Name, l.Remaining, l.Within, l.Quota, l.Window, l.Unit)
	}
	// Output:
	// 22s Retry-After
	// peruser 0 22s 100 1m0s requests
}

// Another server sends the fields that GitHub made popular.
func ExampleRead_xRateLimit() {
	now := time.Unix(1795262400, 0)
	h := http.Header{}
	h.Set("X-RateLimit-Remaining", "0")
	h.Set("X-RateLimit-Reset", "1795262460")

	fmt.Println(headers.Read(http.StatusForbidden, h, now).Wait)
	// Output:
	// 1m0s
}

// The client spreads the 50 units over the 30 seconds.
func ExampleServiceLimit_Pace() {
	h := http.Header{}
	h.Set("RateLimit", `"default";r=50;t=30`)
	fields := headers.Read(http.StatusOK, h, time.Now())
	fmt.Println(fields.Limits[0].Pace())
	// Output: 600ms
}
