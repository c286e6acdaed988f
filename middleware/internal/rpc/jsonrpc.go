// JSON-RPC, which MCP speaks over HTTP.
//
// MCP clients of 2025-06-18 and later name their revision in each request but the handshake, those of 2025-03-26 only
// their session. No other field is certain: Accept and Content-Type of an MCP request may be those of any API.
//
// The code is the HTTP status. MCP reserves -32020 to -32099 for its own errors and has none for a limit, and JSON-RPC
// reserves -32768 to -32000, so a service's own codes stand outside. The name and the unit of the wait are those of
// SEP-3304, a draft that proposes the code -32023.
//
// The id is null, as JSON-RPC has it where the id is unknown: it stands in the body, which a denial does not read. So
// the status cannot be 200, because a client would wait for its id. Of the official SDKs, Python's gives the error to
// the caller of the request if the body has an id, also null. TypeScript's shows the body, and Go's the status alone.

package rpc

import (
	"net/http"
	"strconv"
	"strings"
)

// isJSONRPC reports whether a POST is certainly JSON-RPC.
func isJSONRPC(h http.Header) bool {
	switch strings.ToLower(mediaType(h)) {
	case "application/json-rpc":
		return true
	case "application/json":
		return len(h["Mcp-Protocol-Version"]) > 0 || len(h["Mcp-Session-Id"]) > 0
	}
	return false
}

// jsonRPCError returns a JSON-RPC response with an error. Its message tells the wait, because a language model reads
// little else.
func jsonRPCError(code code, title string, wait int64) []byte {
	body := []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":` + strconv.Itoa(codes[code].status) + `,"message":"` + title)
	switch {
	case wait > 0:
		body = append(body, ". Retry in "+strconv.FormatInt(wait, 10)+" s."...)
	case code.waits():
		body = append(body, ". No wait helps."...)
	}
	body = append(body, '"')
	if wait > 0 {
		body = append(body, `,"data":{"retryAfterMs":`+strconv.FormatInt(wait*1000, 10)+`}`...)
	}
	return append(body, "}}"...)
}
