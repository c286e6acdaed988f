package rpc

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestProtocols: only requests that name a protocol of RPC get its refusals.
func TestProtocols(t *testing.T) {
	for name, tt := range map[string]struct {
		method, target, contentType, connect string
		want                                 Protocol
	}{
		"form":             {"POST", "/", "application/x-www-form-urlencoded", "", None},
		"gRPC":             {"POST", "/", "application/grpc+proto; charset=utf-8", "", grpc},
		"gRPC-Web":         {"POST", "/", "application/grpc-web-text", "", grpc},
		"gRPC by GET":      {"GET", "/", "application/grpc", "", None},
		"a Connect stream": {"POST", "/", "application/connect+json", "", connectStream},
		"no codec":         {"POST", "/", "application/connect", "", None},
		"a Connect call":   {"POST", "/", "application/json", "1", connectUnary},
		"a Connect read":   {"GET", "/?connect=v1&message=x", "", "", connectUnary},
		"another version":  {"GET", "/?connect=v10", "", "", None},
	} {
		r := httptest.NewRequest(tt.method, tt.target, nil)
		if tt.contentType != "" {
			r.Header.Set("Content-Type", tt.contentType)
		}
		if tt.connect != "" {
			r.Header.Set("Connect-Protocol-Version", tt.connect)
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
