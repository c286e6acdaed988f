package problem_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/middleware/internal/comeback"
	"github.com/penstock-go/penstock/middleware/internal/problem"
)

// BenchmarkDenial writes a denial as the middleware does, with its body and jitter.
func BenchmarkDenial(b *testing.B) {
	q, err := headers.NewQuota(headers.QuotaConfig{Name: "peruser", Limit: 100, Requests: 100, Window: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	h := http.Header{}
	b.ReportAllocs()
	for b.Loop() {
		clear(h)
		wait := 17301*time.Millisecond + comeback.Jitter(6*time.Second, "peruser", "usr=42", 1795262460)
		headers.Draft.Write(h, headers.Response{
			Quotas:     []*headers.Quota{q},
			States:     []headers.State{{Quota: q, Denied: true, RetryAfter: wait}},
			Denied:     true,
			RetryAfter: wait,
		})
		problem.SetHeader(h)
		problem.Body(http.StatusTooManyRequests, "quota-exceeded", "peruser")
	}
}
