// What the official clients of MCP make of a denial over HTTP. examples/recipes/mcp has denials of tool calls.

package clients

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/client"
)

// A toolServer has one tool. Its limit counts the requests that call the tool.
type toolServer struct {
	url   string
	calls atomic.Int64
}

func newToolServer(t *testing.T, limiter algorithms.Limiter, limit algorithms.Limit, stateless bool) *toolServer {
	server := mcp.NewServer(&mcp.Implementation{Name: "server", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "echo"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	plain := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: stateless})
	limited := ratelimit.Must(ratelimit.New(limiter, nil, ratelimit.Policy{Name: "p", Limit: limit})).Handler(plain)
	s := new(toolServer)
	s.url = serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte(`"tools/call"`)) {
			s.calls.Add(1)
			limited.ServeHTTP(w, r)
			return
		}
		plain.ServeHTTP(w, r)
	}))
	return s
}

// connect returns a session of the official Go client.
func (s *toolServer) connect(t *testing.T, transport http.RoundTripper) *mcp.ClientSession {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: s.url, HTTPClient: &http.Client{Transport: transport}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

func callEcho(t *testing.T, session *mcp.ClientSession) error {
	_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo"})
	return err
}

// A denialReader keeps the body of the last 429, and then calls denied, unless it is nil.
type denialReader struct {
	body   string
	denied func()
}

func (d *denialReader) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && resp.StatusCode == http.StatusTooManyRequests {
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		d.body, resp.Body = string(body), io.NopCloser(bytes.NewReader(body))
		if d.denied != nil {
			d.denied()
		}
	}
	return resp, err
}

const mcpDenial = `{"jsonrpc":"2.0","id":null,"error":{"code":429,"message":"Quota Exceeded. Retry in 3600 s.","data":{"retryAfterMs":3600000}}}`

// clockedMemory returns a Memory, and its clock in nanoseconds, which stands still.
func clockedMemory() (*algorithms.Memory, *atomic.Int64) {
	clock := new(atomic.Int64)
	return algorithms.NewMemory(&algorithms.MemoryOptions{Now: func() time.Time { return time.Unix(1_800_000_000, clock.Load()) }}), clock
}

// TestMCP: requests of both kinds of revisions, with sessions and without, are JSON-RPC. Go's client reads nothing of a
// denial but its status, and its session goes on.
func TestMCP(t *testing.T) {
	for _, stateless := range []bool{false, true} {
		memory, clock := clockedMemory()
		s := newToolServer(t, memory, algorithms.TokenBucket(1, time.Hour), stateless)
		transport := new(denialReader)
		session := s.connect(t, transport)
		if got := session.ID() == ""; got != stateless {
			t.Errorf("stateless: got %t, want %t", got, stateless)
		}
		if err := callEcho(t, session); err != nil {
			t.Fatal(err)
		}
		if err := callEcho(t, session); err == nil || !strings.Contains(err.Error(), "Too Many Requests") || transport.body != mcpDenial {
			t.Errorf("stateless %t: got %v and %s, want %s", stateless, err, transport.body, mcpDenial)
		}
		clock.Add(int64(time.Hour))
		if err := callEcho(t, session); err != nil {
			t.Errorf("stateless %t: got %v after the wait", stateless, err)
		}
	}
}

// TestMCPWaits: behind a Transport of penstock, Go's client waits as the denial says, and its call succeeds.
func TestMCPWaits(t *testing.T) {
	memory, clock := clockedMemory()
	s := newToolServer(t, memory, algorithms.TokenBucket(1, time.Second), true)
	var denied time.Time
	transport := ratelimit.Must(client.NewTransport(&denialReader{denied: func() {
		denied = time.Now()
		clock.Add(int64(time.Second))
	}}, &client.Options{Retry: func(*http.Request) bool { return true }}))
	session := s.connect(t, transport)
	for range 2 {
		if err := callEcho(t, session); err != nil {
			t.Fatal(err)
		}
	}
	if got, waited := s.calls.Load(), time.Since(denied); got != 3 || waited < time.Second {
		t.Errorf("got %d requests, the last one %v after the denial, want 3, after a second", got, waited)
	}
}

// TestMCPOfTypeScript: TypeScript's client shows an agent the body, so the agent reads the wait.
func TestMCPOfTypeScript(t *testing.T) {
	for _, stateless := range []bool{false, true} {
		memory, _ := clockedMemory()
		out, err := exec.Command("node", "mcp.mjs", newToolServer(t, memory, algorithms.TokenBucket(1, time.Hour), stateless).url).CombinedOutput()
		if err != nil {
			t.Fatalf("node: %v: run make test-clients\n%s", err, out)
		}
		if !strings.Contains(string(out), mcpDenial) {
			t.Errorf("stateless %t: got %s, want %s", stateless, out, mcpDenial)
		}
	}
}
