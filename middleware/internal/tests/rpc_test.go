// The answers to gRPC, gRPC-Web, Connect and JSON-RPC requests, as raw requests see them. internal/clients has tests with
// the real clients.

package tests

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// rpc returns a POST with header fields.
func rpc(fields ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/pkg.Service/Call", strings.NewReader("\x00\x00\x00\x00\x00"))
	r.RemoteAddr = "192.0.2.1:1234"
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	return r
}

// get returns a GET.
func get(target string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.RemoteAddr = "192.0.2.1:1234"
	return r
}

// TestProtocols: each request is refused in the terms of its protocol.
func TestProtocols(t *testing.T) {
	const plain, unary = "application/problem+json", "application/json"
	for _, tt := range []struct {
		name, want string
		code       int
		r          *http.Request
	}{
		{"gRPC", "application/grpc", 200, rpc("Content-Type", "application/grpc")},
		{"gRPC with a codec", "application/grpc+proto", 200, rpc("Content-Type", "application/grpc+proto")},
		{"gRPC with a parameter", "application/grpc", 200, rpc("Content-Type", "application/grpc; charset=utf-8")},
		{"gRPC in capitals", "Application/gRPC", 200, rpc("Content-Type", "Application/gRPC")},
		{"gRPC-Web", "application/grpc-web+proto", 200, rpc("Content-Type", "application/grpc-web+proto")},
		{"gRPC-Web as text", "application/grpc-web-text", 200, rpc("Content-Type", "application/grpc-web-text")},
		{"a stream of Connect", "application/connect+json", 200, rpc("Content-Type", "application/connect+json", "Connect-Protocol-Version", "1")},
		{"a stream of Connect, without a version", "application/connect+proto", 200, rpc("Content-Type", "application/connect+proto")},
		{"a call of Connect", unary, 403, rpc("Content-Type", "application/proto", "Connect-Protocol-Version", "1")},
		{"a call of Connect by GET", unary, 403, get("/?encoding=json&message=%7B%7D&connect=v1")},
		{"a GET", plain, 403, get("/")},
		{"a GET that only looks like Connect", plain, 403, get("/?q=connect=v1")},
		{"a GET of another version", plain, 403, get("/?connect=v10")},
		{"a GET with a version", plain, 403, with(get("/"), "Connect-Protocol-Version", "1")},
		{"a GET of gRPC", plain, 403, with(get("/"), "Content-Type", "application/grpc")},
		{"a POST with the query of Connect", plain, 403, func() *http.Request {
			r := rpc()
			r.URL.RawQuery = "connect=v1"
			return r
		}()},
		{"a POST of JSON", plain, 403, rpc("Content-Type", "application/json")},
		{"no gRPC", plain, 403, rpc("Content-Type", "application/grpcurl")},
		{"no gRPC-Web", plain, 403, rpc("Content-Type", "application/grpc-website")},
		{"no stream of Connect", plain, 403, rpc("Content-Type", "application/connect")},
		{"JSON-RPC", unary, 403, rpc("Content-Type", "application/json-rpc")},
		{"MCP", unary, 403, rpc("Content-Type", "application/json", "MCP-Protocol-Version", "2026-07-28")},
		{"MCP of the first revision", unary, 403, rpc("Content-Type", "application/json; charset=utf-8", "Mcp-Session-Id", "1")},
		{"a POST of JSON that accepts what MCP accepts", plain, 403, rpc("Content-Type", "application/json", "Accept", "application/json, text/event-stream")},
		{"a stream of MCP", plain, 403, with(get("/"), "Mcp-Session-Id", "1")},
		{"the end of a session of MCP", plain, 403, func() *http.Request {
			r := rpc("Mcp-Session-Id", "1")
			r.Method = http.MethodDelete
			return r
		}()},
	} {
		m := newMiddleware(t, newStill(t), nil, byIP("p", algorithms.Nobody()))
		w := record(m.Handler(ok), tt.r)
		if got := w.Header().Get("Content-Type"); got != tt.want || w.Code != tt.code {
			t.Errorf("%s: got %d and %s, want %d and %s", tt.name, w.Code, got, tt.code, tt.want)
		}
	}
}

// TestWaitOfRPC has the bytes of a denial with a wait of 3600 s.
func TestWaitOfRPC(t *testing.T) {
	const retryInfo = "\x0a\x03\x08\x90\x1c" // google.rpc.RetryInfo{retry_delay: {seconds: 3600}}, as protoc encodes it
	const status = "\x08\x08" + "\x12\x0eQuota Exceeded" +
		"\x1a\x31" + "\x0a\x28type.googleapis.com/google.rpc.RetryInfo" + "\x12\x05" + retryInfo
	details := base64.RawStdEncoding.EncodeToString([]byte(status))
	m := newMiddleware(t, newStill(t), nil, byIP("p", perHour(1)))
	record(m.Handler(ok), from("192.0.2.1"))
	w := record(m.Handler(ok), rpc("Content-Type", "application/grpc"))
	want := text("Grpc-Message: Quota Exceeded", "Grpc-Retry-Pushback-Ms: 3600000", "Grpc-Status: 8", "Grpc-Status-Details-Bin: "+details)
	if got := grpcFields(w.Header()); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	w = record(m.Handler(ok), rpc("Connect-Protocol-Version", "1"))
	want = `{"code":"resource_exhausted","message":"Quota Exceeded","details":[{"type":"google.rpc.RetryInfo","value":"` +
		base64.RawStdEncoding.EncodeToString([]byte(retryInfo)) + `"}]}`
	if got := w.Body.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	w = record(m.Handler(ok), rpc("Content-Type", "application/json", "Mcp-Session-Id", "1"))
	want = `{"jsonrpc":"2.0","id":null,"error":{"code":429,"message":"Quota Exceeded. Retry in 3600 s.","data":{"retryAfterMs":3600000}}}`
	if got := w.Body.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestRefusalsInTermsOfRPC: each kind of refusal has its form in each protocol.
func TestRefusalsInTermsOfRPC(t *testing.T) {
	for name, tt := range map[string]struct {
		number, code, message string
		status                int    // of a unary call of Connect
		wait                  string // in milliseconds; "": none, "*": Retry-After's
	}{
		"denied":          {"8", "resource_exhausted", "Quota Exceeded", 429, "3600000"},
		"hidden":          {"8", "resource_exhausted", "Quota Exceeded", 429, "*"},
		"denied for ever": {"8", "resource_exhausted", "Quota Exceeded", 429, "-1"},
		"nobody":          {"7", "permission_denied", "No Requests Allowed", 403, ""},
		"banned":          {"8", "resource_exhausted", "Abnormal Usage Detected", 429, "90000"},
		"capacity":        {"8", "resource_exhausted", "Temporary Reduced Capacity", 429, "*"},
		"failed closed":   {"14", "unavailable", "Service Unavailable", 503, "*"},
		"lookup failed":   {"14", "unavailable", "Service Unavailable", 503, "*"},
		"closed":          {"14", "unavailable", "Service Unavailable", 503, "*"},
		"missing":         {"16", "unauthenticated", "Unauthorized", 401, ""},
		"unknown":         {"16", "unauthenticated", "Unauthorized", 401, ""},
		"malformed":       {"3", "invalid_argument", "Bad Request", 400, ""},
		"empty ID":        {"13", "internal", "Internal Server Error", 500, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			way := waysToBeRefused(t, ratelimit.Options{})[name]
			send := func(fields ...string) *httptest.ResponseRecorder {
				r := rpc(fields...)
				maps.Copy(r.Header, way.r().Header)
				return record(way.m.Handler(ok), r)
			}
			w := send("Content-Type", "application/grpc")
			h, wait := w.Header(), tt.wait
			if wait == "*" {
				wait = h.Get("Retry-After") + "000"
			}
			if got := h.Get("Grpc-Status") + " " + h.Get("Grpc-Message"); got != tt.number+" "+tt.message {
				t.Errorf("%s: got %s, want %s %s", name, got, tt.number, tt.message)
			}
			if got := h.Get("Grpc-Retry-Pushback-Ms"); got != wait || (h.Get("Grpc-Status-Details-Bin") != "") != (h.Get("Retry-After") != "") {
				t.Errorf("%s: got a wait of %q ms, want %q:\n%s", name, got, wait, dump(h))
			}
			if w.Code != 200 || w.Body.Len() > 0 || h.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: got %s, want 200 without a body, not to be stored", name, answerOf(w))
			}

			w = send("Content-Type", "application/json", "Connect-Protocol-Version", "1")
			unary := w.Body.String()
			if w.Code != tt.status || !strings.HasPrefix(unary, `{"code":"`+tt.code+`","message":"`+tt.message+`"`) {
				t.Errorf("%s: got %s, want %d and %s", name, answerOf(w), tt.status, tt.code)
			}
			if strings.Contains(unary, "RetryInfo") != (w.Header().Get("Retry-After") != "") || !json.Valid([]byte(unary)) {
				t.Errorf("%s: got %s, want the wait, if there is one", name, answerOf(w))
			}

			w = send("Content-Type", "application/connect+json")
			envelope := w.Body.Bytes()
			if w.Code != 200 || len(envelope) < 5 || envelope[0] != 2 || int(binary.BigEndian.Uint32(envelope[1:])) != len(envelope)-5 {
				t.Fatalf("%s: got %s, want one last message", name, answerOf(w))
			}
			if got := string(envelope[5:]); tt.wait != "*" && got != `{"error":`+unary+`}` {
				t.Errorf("%s: got %s of a stream, and %s of a call", name, got, unary)
			}

			w = send("Content-Type", "application/json", "Mcp-Session-Id", "1")
			var answer struct {
				Error struct {
					Code    int
					Message string
					Data    struct{ RetryAfterMs json.Number }
				}
			}
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != tt.status || answer.Error.Code != tt.status || !strings.HasPrefix(answer.Error.Message, tt.message) {
				t.Errorf("%s: got %s, want %d and %s", name, answerOf(w), tt.status, tt.message)
			}
			seconds := w.Header().Get("Retry-After")
			if got := answer.Error.Data.RetryAfterMs.String(); strings.TrimSuffix(got, "000") != seconds || strings.Contains(answer.Error.Message, "Retry in "+seconds+" s.") != (seconds != "") {
				t.Errorf("%s: got %s, want the wait of %s s", name, answerOf(w), seconds)
			}
		})
	}
}

// grpcFields returns the fields of gRPC.
func grpcFields(h http.Header) string {
	fields := http.Header{}
	for name, values := range h {
		if strings.HasPrefix(name, "Grpc-") {
			fields[name] = values
		}
	}
	return dump(fields)
}

// TestRPCHasTheFields: refusals of RPC keep the limit fields, and hidden policies stay hidden.
func TestRPCHasTheFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &ratelimit.Options{Headers: headers.Draft}
		m := newMiddleware(t, newMemory(t), o, byIP("open", hourly), ratelimit.Policy{
			Name: "secret", Key: keyfunc.Const("all"), Limit: perHour(1), Hidden: true,
		})
		record(m.Handler(ok), from("192.0.2.2"))
		w := record(m.Handler(ok), rpc("Content-Type", "application/grpc"))
		if got := dump(w.Header()); strings.Contains(got, "secret") || !strings.Contains(got, `Ratelimit-Policy: "open"`) || w.Header().Get("Grpc-Status") != "8" {
			t.Errorf("got\n%s", got)
		}
	})
}

// TestRefusedAnswersRPC: Options.Refused answers all refused requests.
func TestRefusedAnswersRPC(t *testing.T) {
	o := &ratelimit.Options{Refused: func(w http.ResponseWriter, _ *http.Request, v ratelimit.Verdict) { w.WriteHeader(v.Status) }}
	w := record(newMiddleware(t, newStill(t), o, byIP("p", algorithms.Nobody())).Handler(ok), rpc("Content-Type", "application/grpc"))
	if w.Code != 403 || grpcFields(w.Header()) != "" {
		t.Errorf("got %s, want what Denied writes", answerOf(w))
	}
}

// TestTrailersOnly: over HTTP/2 the refusal of a gRPC request is one frame of headers that ends the stream. Clients
// read a status in headers that do not end it as a protocol error.
func TestTrailersOnly(t *testing.T) {
	server := httptest.NewUnstartedServer(newMiddleware(t, newStill(t), nil, byIP("p", algorithms.Nobody())).Handler(ok))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()

	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	const endHeaders, endStream = 4, 1
	var request bytes.Buffer
	request.WriteString("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	request.Write(frame(4, 0, 0, nil)) // SETTINGS
	request.Write(frame(1, endHeaders, 1, literals(
		":method", "POST", ":scheme", "http", ":path", "/pkg.Service/Call", ":authority", "a", "content-type", "application/grpc", "te", "trailers")))
	if _, err := conn.Write(request.Bytes()); err != nil {
		t.Fatal(err)
	}
	for {
		kind, flags, stream, err := readFrame(conn)
		if err != nil {
			t.Fatal(err)
		}
		if stream != 1 {
			continue // of the connection
		}
		if kind != 1 || flags != endHeaders|endStream {
			t.Errorf("got a frame of kind %d and flags %#x, want headers that end the stream", kind, flags)
		}
		return
	}
}

// frame returns a frame of HTTP/2 (RFC 9113 section 4.1).
func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	head := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	return append(binary.BigEndian.AppendUint32(head, stream), payload...)
}

// literals returns fields as HPACK that needs no table (RFC 7541 section 6.2.2).
func literals(fields ...string) (block []byte) {
	for i, text := range fields {
		if i%2 == 0 {
			block = append(block, 0)
		}
		block = append(append(block, byte(len(text))), text...)
	}
	return block
}

func readFrame(r io.Reader) (kind, flags byte, stream uint32, err error) {
	head := make([]byte, 9)
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, 0, 0, errors.New("the server has sent no answer")
	}
	length := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
	_, err = io.CopyN(io.Discard, r, length)
	return head[3], head[4], binary.BigEndian.Uint32(head[5:]), err
}
