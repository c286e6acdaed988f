package problem_test

import (
	"fmt"
	"net/http"

	"github.com/penstock-go/penstock/middleware/internal/problem"
)

func ExampleSetHeader() {
	h := http.Header{"Cache-Control": {"max-age=3600"}, "Etag": {`"v1"`}}
	problem.SetHeader(h)
	fmt.Print(dump(h))
	// Output:
	// Cache-Control: no-store
	// Content-Type: application/problem+json
	// X-Content-Type-Options: nosniff
}

func ExampleBody() {
	fmt.Printf("%s\n", problem.Body(http.StatusTooManyRequests, "quota-exceeded", "peruser", "hourly"))
	fmt.Printf("%s\n", problem.Body(http.StatusTooManyRequests, "abnormal-usage-detected", "peruser"))
	fmt.Printf("%s\n", problem.Body(http.StatusServiceUnavailable, "temporary-reduced-capacity"))
	fmt.Printf("%s\n", problem.Body(http.StatusUnauthorized, ""))
	// Output:
	// {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","status":429,"violated-policies":["peruser","hourly"]}
	// {"type":"https://iana.org/assignments/http-problem-types#abnormal-usage-detected","title":"Abnormal Usage Detected","status":429,"violated-policies":["peruser"]}
	// {"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","title":"Temporary Reduced Capacity","status":503}
	// {"type":"about:blank","title":"Unauthorized","status":401}
}
