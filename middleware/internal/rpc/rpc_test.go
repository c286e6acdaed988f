package rpc

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestProtocols: only requests that name a protocol of RPC get its refusals.
func TestProtocols(t *testing.T) {
	for name, tt := range map[string]struct {
		method, target, contentType, field string
		want                               Protocol
	}{
		"form":             {"POST", "/", "application/x-www-form-urlencoded", "", None},
		"gRPC":             {"POST", "/", "application/grpc+proto; charset=utf-8", "", grpc},
		"gRPC-Web":         {"POST", "/", "application/grpc-web-text", "", grpc},
		"gRPC by GET":      {"GET", "/", "application/grpc", "", None},
		"a Connect stream": {"POST", "/", "application/connect+json", "", connectStream},
		"no codec":         {"POST", "/", "application/connect", "", None},
		"a Connect call":   {"POST", "/", "application/json", "Connect-Protocol-Version", connectUnary},
		"a Connect read":   {"GET", "/?connect=v1&message=x", "", "", connectUnary},
		"another version":  {"GET", "/?connect=v10", "", "", None},
		"JSON":             {"POST", "/", "application/json", "", None},
		"JSON-RPC":         {"POST", "/", "Application/JSON-RPC; charset=utf-8", "", jsonRPC},
		"JSON-RPC by GET":  {"GET", "/", "application/json-rpc", "", None},
		"MCP":              {"POST", "/", "application/json; charset=utf-8", "MCP-Protocol-Version", jsonRPC},
		"MCP 2025-03-26":   {"POST", "/", "application/json", "Mcp-Session-Id", jsonRPC},
		"a stream of MCP":  {"GET", "/", "", "Mcp-Session-Id", None},
		"no JSON":          {"POST", "/", "text/plain", "Mcp-Session-Id", None},
	} {
		r := httptest.NewRequest(tt.method, tt.target, nil)
		if tt.contentType != "" {
			r.Header.Set("Content-Type", tt.contentType)
		}
		if tt.field != "" {
			r.Header.Set(tt.field, "1")
		}
		if got := ProtocolOf(r); got != tt.want {
			t.Errorf("%s: got %d, want %d", name, got, tt.want)
		}
	}
}

// TestRefusals: each refusal has its code, and a wait only where one helps.
func TestRefusals(t *testing.T) {
	for name, tt := range map[string]struct {
		why        Refusal
		retryAfter string
		code       string // of gRPC
		pushback   string
	}{
		"denied":          {Refusal{429, true, "Quota Exceeded"}, "7", "8", "7000"},
		"denied for ever": {Refusal{429, true, "Quota Exceeded"}, "", "8", "-1"},
		"nobody":          {Refusal{403, true, "No Requests Allowed"}, "", "7", ""},
		"no capacity":     {Refusal{503, true, "Temporary Reduced Capacity"}, "7", "8", "7000"},
		"no decision":     {Refusal{503, false, "Service Unavailable"}, "3", "14", "3000"},
		"no identity":     {Refusal{401, false, "Unauthorized"}, "", "16", ""},
		"malformed":       {Refusal{400, false, "Bad Request"}, "", "3", ""},
		"a mistake":       {Refusal{500, false, "Internal Server Error"}, "", "13", ""},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("POST", "/", nil)
		r.Header.Set("Content-Type", "application/grpc")
		if tt.retryAfter != "" {
			w.Header().Set("Retry-After", tt.retryAfter)
		}
		grpc.Refuse(w, r, &tt.why)
		h := w.Header()
		if h.Get("Grpc-Status") != tt.code || h.Get("Grpc-Retry-Pushback-Ms") != tt.pushback || h.Get("Grpc-Message") != tt.why.Title || w.Code != http.StatusOK {
			t.Errorf("%s: got %d and %v, want code %s and a pushback of %q", name, w.Code, h, tt.code, tt.pushback)
		}
		w = httptest.NewRecorder()
		connectUnary.Refuse(w, r, &tt.why)
		if want := codes[tt.why.code()]; w.Code != want.status || !strings.Contains(w.Body.String(), `"code":"`+want.name+`"`) {
			t.Errorf("%s: Connect got %d %s, want %d and %s", name, w.Code, w.Body, want.status, want.name)
		}
	}
}

// TestJSONRPC has the bytes of each kind of refusal.
func TestJSONRPC(t *testing.T) {
	for _, tt := range []struct {
		why        Refusal
		retryAfter string
		status     int
		want       string // after the ID
	}{
		{Refusal{429, true, "Quota Exceeded"}, "7", 429, `{"code":429,"message":"Quota Exceeded. Retry in 7 s.","data":{"retryAfterMs":7000}}`},
		{Refusal{429, true, "Quota Exceeded"}, "", 429, `{"code":429,"message":"Quota Exceeded. No wait helps."}`},
		{Refusal{403, true, "No Requests Allowed"}, "", 403, `{"code":403,"message":"No Requests Allowed"}`},
		{Refusal{503, true, "Temporary Reduced Capacity"}, "7", 429, `{"code":429,"message":"Temporary Reduced Capacity. Retry in 7 s.","data":{"retryAfterMs":7000}}`},
		{Refusal{503, false, "Service Unavailable"}, "3", 503, `{"code":503,"message":"Service Unavailable. Retry in 3 s.","data":{"retryAfterMs":3000}}`},
		{Refusal{401, false, "Unauthorized"}, "", 401, `{"code":401,"message":"Unauthorized"}`},
		{Refusal{400, false, "Bad Request"}, "", 400, `{"code":400,"message":"Bad Request"}`},
		{Refusal{500, false, "Internal Server Error"}, "", 500, `{"code":500,"message":"Internal Server Error"}`},
	} {
		w := httptest.NewRecorder()
		if tt.retryAfter != "" {
			w.Header().Set("Retry-After", tt.retryAfter)
		}
		jsonRPC.Refuse(w, httptest.NewRequest("POST", "/", nil), &tt.why)
		want := `{"jsonrpc":"2.0","id":null,"error":` + tt.want + "}"
		if got := w.Body.String(); got != want || w.Code != tt.status || w.Header().Get("Content-Type") != "application/json" || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%+v: got %d and %s, want %d and %s", tt.why, w.Code, got, tt.status, want)
		}
	}
}
