package replay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/replay"
)

// newHandler builds the handler of a service. Its limits count with the limiter.
func newHandler(limiter algorithms.Limiter) (http.Handler, error) {
	orders, err := ratelimit.New(limiter, nil, ratelimit.Policy{
		Name: "orders", Key: keyfunc.FirstOf(keyfunc.APIKey("X-API-Key", lookup), keyfunc.IP(nil)),
		Limit: algorithms.TokenBucket(60, time.Minute).WithBurst(2),
	})
	if err != nil {
		return nil, err
	}
	r := chi.NewRouter()
	r.With(orders.Handler).Get("/v1/orders/{id}", getOrder)
	return r, nil
}

func getOrder(http.ResponseWriter, *http.Request) { panic("a replay runs no handler") }

func lookup(context.Context, string) (keyfunc.Identity, error) { panic("a replay looks nobody up") }

// A service replays its access logs instead of serving:
//
//	service -replay access.log access.log.1.gz
func ExampleFlags() {
	flags := flag.NewFlagSet("service", flag.ExitOnError)
	logs := replay.Flags(flags)
	_ = flags.Parse([]string{"-replay", "testdata/access.log.gz"}) // os.Args[1:]

	if len(logs.Files) > 0 { // of -replay, which replay.Flags defines
		logs.Files = append(logs.Files, flags.Args()...)
		err := replay.Run(context.Background(), newHandler, logs) // func newHandler(algorithms.Limiter) (http.Handler, error)
		if err != nil {
			fmt.Println(err)
		}
		return
	}
	handler, err := newHandler(algorithms.NewMemory(nil))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(http.ListenAndServe(":8080", handler))
	// Output:
	// 1,920 requests from 2026-11-23 10:00:00 to 2026-11-23 10:59:45 UTC (59m45s)
	//   240 would be refused with 429
	//   The log has whole seconds. Requests of one second come at once, so bursts look larger than they were.
	//
	// orders
	//   limit            token-bucket 60/1m burst 2, denies 240 of 1,920 requests (12.50 %) and 1 of 13 keys
	//   denied most      ip=192.0.2.99 240 of 720
	//   worst minute     2026-11-23 10:00 UTC, 4 of 36 requests denied; longest wait 1s
	//     limits                                  clients denied   share  requests denied    share  busiest second that passes
	//       token-bucket 30/1m burst 1                         1  7.69 %              480     25 %                           2
	//       token-bucket 35/1m burst 2                         1  7.69 %              240  12.50 %                           3
	//       token-bucket 40/1m burst 2                         1  7.69 %              240  12.50 %                           3
	//       token-bucket 46/1m burst 2                         1  7.69 %              240  12.50 %                           3
	//       token-bucket 53/1m burst 2                         1  7.69 %              240  12.50 %                           3
	//       token-bucket 61/1m burst 3                         0     0 %                0      0 %                           4
	//   smallest limit   token-bucket 61/1m burst 3, to deny at most 1 % of clients
	//   proposal         token-bucket 74/1m burst 3: with 20 % headroom, denies 0 % of requests and 0 % of clients
	//                    based on 59m45s; other hours and days may have more traffic
	//       candidate := ratelimit.Must(algorithms.ParseLimit("token-bucket 74/1m burst 3"))
	//       // in the Policy "orders"
	//       Candidate: &candidate,
}

// Run takes a function, so it replays the policies of any handler, here of a ServeMux.
func ExampleRun() {
	limits := func(limiter algorithms.Limiter) (http.Handler, error) {
		orders, err := ratelimit.New(limiter, nil, ratelimit.Policy{
			Name: "orders", Limit: algorithms.FixedWindow(10, time.Minute), // Key: the client's address
		})
		if err != nil {
			return nil, err
		}
		mux := http.NewServeMux()
		mux.Handle("GET /v1/orders/{id}", orders.Handler(http.HandlerFunc(getOrder)))
		return mux, nil
	}
	var report bytes.Buffer
	err := replay.Run(context.Background(), limits, &replay.Options{
		Files: []string{"testdata/access.log.gz"}, Format: "json", Stdout: &report,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var found struct {
		Policies []struct {
			Policy   string
			Proposal struct{ Limit string }
		}
	}
	if err := json.Unmarshal(report.Bytes(), &found); err != nil {
		fmt.Println(err)
	}
	fmt.Println(found.Policies[0].Policy, found.Policies[0].Proposal.Limit)
	// Output: orders fixed-window 15/1m
}
