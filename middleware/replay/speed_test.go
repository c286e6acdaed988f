package replay

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// BenchmarkRun replays 200 000 lines of 5 000 clients. Each iteration is one replay.
func BenchmarkRun(b *testing.B) {
	const lines, clients = 200_000, 5_000
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, line := range map[string]func(at time.Time, client string) string{
		"common": func(at time.Time, client string) string {
			return fmt.Sprintf("%s - - [%s] \"GET /orders/7?of=all HTTP/1.1\" 200 2326 \"-\" \"agent/1.0\"\n", client, at.Format(commonTime))
		},
		"JSON": func(at time.Time, client string) string {
			return fmt.Sprintf(`{"time":%q,"level":"INFO","msg":"request","remote_addr":%q,"method":"GET","path":"/orders/7","status":200,"duration":0.012}`+"\n", at.Format(time.RFC3339Nano), client)
		},
	} {
		b.Run(name, func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 2))
			var text strings.Builder
			for i := range lines {
				client := int(clients * random.Float64() * random.Float64() * random.Float64())
				text.WriteString(line(begin.Add(time.Duration(i)*20*time.Millisecond), fmt.Sprintf("10.0.%d.%d", client>>8, client&255)))
			}
			service := func(l algorithms.Limiter) (http.Handler, error) {
				return ratelimit.Must(ratelimit.New(l, nil, ratelimit.Policy{Name: "p", Limit: algorithms.TokenBucket(20, time.Minute)})).Handler(served), nil
			}
			b.ReportAllocs()
			for b.Loop() {
				o := Options{Files: []string{"-"}, Stdin: strings.NewReader(text.String()), Stdout: io.Discard}
				if err := Run(b.Context(), service, &o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
