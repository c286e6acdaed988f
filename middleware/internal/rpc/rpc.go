// Package rpc answers refusals of gRPC, gRPC-Web, Connect and JSON-RPC requests,
// in the terms of these protocols. Clients of the first three read a bare 429 as
// UNAVAILABLE, and many retry that at once. Agents that speak MCP read no header.
// An [Ending] reads how an answered request ended.
//
//	Status                       Code                Wait
//	429                          RESOURCE_EXHAUSTED  of the denial
//	403                          PERMISSION_DENIED   none
//	503 of Capacity policies     RESOURCE_EXHAUSTED  of the denial
//	503 for any other reason     UNAVAILABLE         1 to 5 s
//	401                          UNAUTHENTICATED     none
//	400                          INVALID_ARGUMENT    none
//	500                          INTERNAL            none
//
// A denial by Capacity policies is not UNAVAILABLE, because retries at once
// would make a shortage worse.
//
// gRPC needs no body: a response whose only header block has the status is a
// "trailers-only" response. Connect sends the error as JSON, and a stream wraps
// it into its last message. These three carry a google.rpc.RetryInfo, a dozen
// bytes of protobuf. We encode them by hand rather than link a protobuf
// library.
package rpc

import (
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// A Protocol is the form in which the client expects a refusal.
type Protocol uint8

const (
	None          Protocol = iota // plain HTTP
	grpc                          // also gRPC-Web, whose clients read the same header
	connectStream                 // client, server and bidirectional streams
	connectUnary
	jsonRPC
)

// ProtocolOf returns the protocol of a request. All protocols POST, and
// Connect also reads by GET.
func ProtocolOf(r *http.Request) Protocol {
	switch r.Method {
	case http.MethodPost:
		family, hasCodec := familyOf(r.Header)
		switch {
		case family == "application/grpc" || family == "application/grpc-web" || family == "application/grpc-web-text":
			return grpc
		case family == "application/connect" && hasCodec:
			return connectStream
		case len(r.Header["Connect-Protocol-Version"]) > 0:
			return connectUnary
		case isJSONRPC(r.Header):
			return jsonRPC
		}
	case http.MethodGet:
		// Few queries need to be parsed.
		if strings.Contains(r.URL.RawQuery, "connect=v1") && r.URL.Query().Get("connect") == "v1" {
			return connectUnary
		}
	}
	return None
}

// mediaType returns the Content-Type of a header without its parameters.
func mediaType(h http.Header) string {
	media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.TrimSpace(media)
}

// familyOf returns the media type in lower case without its codec, and whether it has one: application/grpc+proto.
func familyOf(h http.Header) (family string, hasCodec bool) {
	family, _, hasCodec = strings.Cut(strings.ToLower(mediaType(h)), "+")
	return family, hasCodec
}

// isJSONRPC reports whether a POST is certainly JSON-RPC, which MCP speaks over HTTP.
//
// MCP clients of 2025-06-18 and later name their revision in each request but the handshake, those of 2025-03-26 only
// their session. No other field is certain: Accept and Content-Type of an MCP request may be those of any API.
func isJSONRPC(h http.Header) bool {
	switch strings.ToLower(mediaType(h)) {
	case "application/json-rpc":
		return true
	case "application/json":
		return len(h["Mcp-Protocol-Version"]) > 0 || len(h["Mcp-Session-Id"]) > 0
	}
	return false
}

// A Refusal is what a client learns.
type Refusal struct {
	Status int    // of plain HTTP
	Denied bool   // by a policy: exhaustion except for 403, also if Status is 503, because clients retry UNAVAILABLE at once
	Title  string // needs no escape in JSON or in a header of gRPC
}

// A code is a status code of gRPC. Connect has the same codes with other names.
type code byte

const (
	unknown           code = 2
	invalidArgument   code = 3
	permissionDenied  code = 7
	resourceExhausted code = 8
	internal          code = 13
	unavailable       code = 14
	unauthenticated   code = 16
)

// codes has the names of Connect, and the HTTP statuses of google.rpc.Code, which are also those of unary calls of
// Connect and of JSON-RPC.
var codes = [...]struct {
	name   string
	status int
}{
	{"ok", 200}, {"canceled", 499}, {"unknown", 500}, {"invalid_argument", 400}, {"deadline_exceeded", 504}, {"not_found", 404},
	{"already_exists", 409}, {"permission_denied", 403}, {"resource_exhausted", 429}, {"failed_precondition", 400}, {"aborted", 409},
	{"out_of_range", 400}, {"unimplemented", 501}, {"internal", 500}, {"unavailable", 503}, {"data_loss", 500}, {"unauthenticated", 401},
}

// waits reports whether the client may come back.
func (c code) waits() bool { return c == resourceExhausted || c == unavailable }

func (r *Refusal) code() code {
	switch {
	case r.Status == http.StatusForbidden:
		return permissionDenied
	case r.Denied:
		return resourceExhausted
	case r.Status == http.StatusUnauthorized:
		return unauthenticated
	case r.Status == http.StatusBadRequest:
		return invalidArgument
	case r.Status == http.StatusServiceUnavailable:
		return unavailable
	default:
		return internal
	}
}

// Refuse answers a refused request of the protocol, which is not None. It reads the
// wait from Retry-After, which is set already.
func (p Protocol) Refuse(w http.ResponseWriter, r *http.Request, why *Refusal) {
	h, code, wait := w.Header(), why.code(), int64(0)
	if code.waits() {
		wait, _ = strconv.ParseInt(h.Get("Retry-After"), 10, 64) // 0: waiting does not help
	}
	switch p {
	case grpc:
		h.Set("Content-Type", mediaType(r.Header))
		describeGRPC(h, code, why.Title, wait)
		w.WriteHeader(http.StatusOK)
	case connectStream:
		h.Set("Content-Type", mediaType(r.Header))
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write(lastMessage(connectError(code, why.Title, wait))) // a client that has hung up needs no answer
	case connectUnary:
		h.Set("Content-Type", "application/json")
		w.WriteHeader(codes[code].status)
		_, _ = w.Write(connectError(code, why.Title, wait))
	case jsonRPC:
		h.Set("Content-Type", "application/json")
		w.WriteHeader(codes[code].status)
		_, _ = w.Write(jsonRPCError(code, why.Title, wait))
	}
}

// describeGRPC sets the status of a trailers-only response. Retry policies of gRPC
// obey grpc-retry-pushback-ms (gRFC A6), and do not read RetryInfo.
func describeGRPC(h http.Header, code code, message string, wait int64) {
	h.Set("Grpc-Status", strconv.Itoa(int(code)))
	h.Set("Grpc-Message", message)
	switch {
	case wait > 0:
		status := binary.AppendUvarint([]byte{1 << 3}, uint64(code)) // google.rpc.Status.code
		status = appendBytes(status, 2, []byte(message))
		detail := appendBytes(nil, 1, []byte("type.googleapis.com/google.rpc.RetryInfo")) // google.protobuf.Any
		detail = appendBytes(detail, 2, retryInfo(wait))
		status = appendBytes(status, 3, detail)
		h.Set("Grpc-Status-Details-Bin", base64.RawStdEncoding.EncodeToString(status))
		h.Set("Grpc-Retry-Pushback-Ms", strconv.FormatInt(wait*1000, 10))
	case code.waits():
		h.Set("Grpc-Retry-Pushback-Ms", "-1") // do not retry
	}
}

// connectError returns a Connect error as JSON.
func connectError(code code, message string, wait int64) []byte {
	body := []byte(`{"code":"` + codes[code].name + `","message":"` + message + `"`)
	if wait > 0 {
		body = append(body, `,"details":[{"type":"google.rpc.RetryInfo","value":"`...)
		body = base64.RawStdEncoding.AppendEncode(body, retryInfo(wait))
		body = append(body, `"}]`...)
	}
	return append(body, '}')
}

// lastMessage returns an error as the last message of a Connect stream.
func lastMessage(connectError []byte) []byte {
	message := slices.Concat([]byte(`{"error":`), connectError, []byte("}"))
	envelope := binary.BigEndian.AppendUint32([]byte{flagEndStream}, uint32(len(message)))
	return append(envelope, message...)
}

// jsonRPCError returns a JSON-RPC response with an error. Its message tells the wait, because a language model reads
// little else.
//
// The code is the HTTP status. MCP reserves -32020 to -32099 for its own errors and has none for a limit, and JSON-RPC
// reserves -32768 to -32000, so a service's own codes stand outside. The name and the unit of the wait are those of
// SEP-3304, a draft that proposes the code -32023.
//
// The id is null, as JSON-RPC has it where the id is unknown: it stands in the body, which a denial does not read. So
// the status cannot be 200, because a client would wait for its id. Of the official SDKs, Python's gives the error to
// the caller of the request if the body has an id, also null. TypeScript's shows the body, and Go's the status alone.
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

// retryInfo returns a google.rpc.RetryInfo with a retry_delay in seconds.
func retryInfo(seconds int64) []byte {
	delay := binary.AppendUvarint([]byte{1 << 3}, uint64(seconds)) // google.protobuf.Duration.seconds
	return appendBytes(nil, 1, delay)
}

// appendBytes appends a field of protobuf that has a length: a string or a message.
func appendBytes(buf []byte, field byte, value []byte) []byte {
	const hasLength = 2
	buf = binary.AppendUvarint(append(buf, field<<3|hasLength), uint64(len(value)))
	return append(buf, value...)
}
