// Command mcp limits the tool calls of an MCP server by user, by session and by tool, in one decision.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/calls"
)

// limits returns the limit of HTTP requests, which also counts handshakes and lists of tools, and the limits of tool calls.
func limits(limiter algorithms.Limiter, find func(context.Context, string) (keyfunc.Identity, error)) (requests, tools *ratelimit.Middleware) {
	user := keyfunc.APIKey("Authorization", keyfunc.Cached(find, 10_000, time.Minute))
	session := keyfunc.Optional(keyfunc.Header("Mcp-Session-Id")) // the SDK has checked it
	requests = ratelimit.Must(ratelimit.New(limiter, nil,
		ratelimit.Policy{Name: "requests", Key: user, Limit: algorithms.TokenBucket(600, time.Minute)}))
	tools = ratelimit.Must(ratelimit.New(limiter, nil,
		ratelimit.Policy{Name: "user", Key: user, Limit: algorithms.TokenBucket(30, time.Minute)},
		ratelimit.Policy{Name: "session", Key: session, Limit: algorithms.TokenBucket(20, time.Minute)},
		ratelimit.Policy{Name: "tool", Key: keyfunc.Join(user, keyfunc.Route()), Limit: algorithms.TokenBucket(12, time.Minute)}))
	return requests, tools
}

// limitTools decides on each tool call. The user's limit bounds how many names of tools a client can make up.
func limitTools(tools *ratelimit.Middleware) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if call, ok := req.(*mcp.CallToolRequest); ok {
				v, _ := calls.Allow(ctx, tools, calls.Call{Name: call.Params.Name, Header: call.Extra.Header}) // an agent must not see the error
				if !v.Allowed {
					return nil, denial(v)
				}
			}
			return next(ctx, method, req)
		}
	}
}

// denial says the wait in words, because a language model reads the message, and in the field that SEP-3304 proposes.
// MCP has no code for limits and reserves -32020 to -32099, so the code is the HTTP status.
func denial(v ratelimit.Verdict) error {
	e := &jsonrpc.Error{Code: int64(v.Status), Message: http.StatusText(v.Status)}
	if v.RetryAfter == algorithms.Never {
		e.Message += ". No wait helps."
	} else if seconds := (v.RetryAfter + time.Second - 1) / time.Second; seconds > 0 {
		e.Message += fmt.Sprintf(". Retry in %d s.", seconds)
		e.Data = fmt.Appendf(nil, `{"retryAfterMs":%d}`, seconds*1000)
	}
	return e
}

type place struct {
	Name string `json:"name"`
}

// answer stands for your tools.
func answer(_ context.Context, r *mcp.CallToolRequest, in place) (*mcp.CallToolResult, any, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: r.Params.Name + " of " + in.Name}}}, nil, nil
}

func newHandler(limiter algorithms.Limiter, find func(context.Context, string) (keyfunc.Identity, error)) http.Handler {
	requests, tools := limits(limiter, find)
	server := mcp.NewServer(&mcp.Implementation{Name: "weather", Version: "1.0.0"}, nil)
	for _, name := range []string{"forecast", "history", "warnings"} {
		mcp.AddTool(server, &mcp.Tool{Name: name}, answer)
	}
	server.AddReceivingMiddleware(limitTools(tools))
	return requests.Handler(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
}

func main() {
	http.Handle("/mcp", newHandler(algorithms.NewMemory(nil), func(context.Context, string) (keyfunc.Identity, error) {
		return keyfunc.Identity{ID: "acme"}, nil // ask your database
	}))
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", nil))
}
