package rpc

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
)

// frame returns a frame of the body.
func frame(flags byte, payload string) string {
	return string(binary.BigEndian.AppendUint32([]byte{flags}, uint32(len(payload)))) + payload
}

// zipped returns a text that gzip has compressed.
func zipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(text)) // a Buffer never fails
	_ = z.Close()
	return b.String()
}

// lasts returns the same code as the last frame of gRPC-Web and of a Connect stream.
func lasts(number int) (web, connect string) {
	connect = fmt.Sprintf(`{"error":{"code":%q,"message":"m","details":[]},"metadata":{"a":["b"]}}`, codes[number].name)
	if number == 0 {
		connect = `{"metadata":{"a":["b"]}}`
	}
	return fmt.Sprintf("grpc-message:m\r\ngrpc-status: %d\r\na: b\r\n", number), connect
}

// inText returns parts in base64, each encoded by itself.
func inText(parts ...string) (all string) {
	for _, p := range parts {
		all += base64.StdEncoding.EncodeToString([]byte(p)) + "\r\n"
	}
	return all
}

// TestEndings: each code is read from each protocol, wherever the body is cut into parts.
func TestEndings(t *testing.T) {
	for number, code := range codes {
		web, connect := lasts(number)
		text, status := frame(0, "\x80\x00message")+frame(0, ""), fmt.Sprint(number)
		for _, tt := range []struct {
			name, contentType, body string
			header                  http.Header
		}{
			{"trailer", "application/grpc", text, http.Header{"Grpc-Status": {status}}},
			{"undeclared trailer", "application/grpc+proto", text, http.Header{http.TrailerPrefix + "Grpc-Status": {status}, "Grpc-Status": {"0"}}},
			{"trailer in lower case", "Application/gRPC; charset=utf-8", text, http.Header{http.TrailerPrefix + "grpc-status": {status}}},
			{"web", "application/grpc-web+proto", text + frame(0x80, web), nil},
			{"web, only a header", "application/grpc-web", "", http.Header{"Grpc-Status": {status}}},
			{"web, compressed", "application/grpc-web", text + frame(0x81, zipped(web)), nil},
			{"web, text", "application/grpc-web-text", inText(text + frame(0x80, web)), nil},
			{"web, text in parts", "application/grpc-web-text+proto", inText(text, frame(0x80, web)), nil},
			{"stream", "application/connect+json", text + frame(2, connect), nil},
			{"stream, compressed", "application/connect+proto", frame(1, zipped("m")) + frame(3, zipped(connect)), nil},
		} {
			for _, size := range []int{1, 2, 3, 5, 7, 1000} {
				h := tt.header.Clone()
				if h == nil {
					h = make(http.Header)
				}
				h.Set("Content-Type", tt.contentType)
				e := EndingOf(h)
				if e == nil {
					t.Fatalf("%s: got no Ending", tt.name)
				}
				for body := tt.body; body != ""; {
					n := min(size, len(body))
					_, _ = e.Write([]byte(body[:n])) // never fails
					body = body[n:]
				}
				if got := e.Status(); got != code.status {
					t.Errorf("%s, code %d, parts of %d bytes: got %d, want %d", tt.name, number, size, got, code.status)
				}
			}
		}
	}
}

// TestUnreadableEndings: a response without a code has no status, and an unknown code is UNKNOWN.
func TestUnreadableEndings(t *testing.T) {
	web, connect := lasts(16)
	for _, tt := range []struct {
		name, contentType, body, status string
		want                            int
	}{
		{"no trailer", "application/grpc", frame(0, "x"), "", 0},
		{"a code of a later time", "application/grpc", "", "17", 500},
		{"not a number", "application/grpc", "", "no", 500},
		{"an empty body", "application/grpc-web", "", "", 0},
		{"no last frame", "application/grpc-web", frame(0, web), "", 0},
		{"no code", "application/grpc-web", frame(0x80, "a: b\r\n"), "", 0},
		{"an empty last frame", "application/grpc-web", frame(0x80, ""), "", 0},
		{"not base64", "application/grpc-web-text", "????????", "", 0},
		{"not gzip", "application/grpc-web", frame(0x81, web), "", 0},
		{"no end of the stream", "application/connect+json", frame(0, connect), "", 0},
		{"a header of gRPC", "application/connect+json", "", "16", 0},
		{"an empty end", "application/connect+json", frame(2, ""), "", 0},
		{"not gzip", "application/connect+json", frame(3, connect), "", 0},
		{"not JSON", "application/connect+json", frame(2, "x"), "", 0},
		{"a cut end", "application/connect+json", frame(2, connect)[:20], "", 0},
		{"an unknown code", "application/connect+json", frame(2, `{"error":{"code":"odd"}}`), "", 500},
		{"no error", "application/connect+json", frame(2, `{}`), "", 200},
		{"too long", "application/connect+json", frame(2, `{"error":{"message":"`+strings.Repeat("m", maxEnd)+`","code":"aborted"}}`), "", 0},
		{"too long when decompressed", "application/connect+json", frame(3, zipped(`{"error":{"message":"`+strings.Repeat("m", maxEnd)+`","code":"aborted"}}`)), "", 0},
	} {
		h := http.Header{"Content-Type": {tt.contentType}}
		if tt.status != "" {
			h.Set("Grpc-Status", tt.status)
		}
		e := EndingOf(h)
		_, _ = e.Write([]byte(tt.body)) // never fails
		if got := e.Status(); got != tt.want {
			t.Errorf("%s, %s: got %d, want %d", tt.contentType, tt.name, got, tt.want)
		}
	}
}

// TestOtherResponses: no other response is read.
func TestOtherResponses(t *testing.T) {
	for _, contentType := range []string{"", "text/html", "application/json", "application/proto", "application/connect", "application/grpcish", "application/problem+json"} {
		h := make(http.Header)
		if contentType != "" {
			h.Set("Content-Type", contentType)
		}
		if allocs := testing.AllocsPerRun(100, func() {
			if EndingOf(h) != nil {
				t.Errorf("%q is read as an RPC", contentType)
			}
		}); allocs != 0 {
			t.Errorf("%q: got %v allocations, want none", contentType, allocs)
		}
	}
}

// TestEndingIsSmall: of a body of a gigabyte, no more than the last frame's beginning is kept.
func TestEndingIsSmall(t *testing.T) {
	e := EndingOf(http.Header{"Content-Type": {"application/connect+proto"}})
	part := make([]byte, 1<<20)
	message := append([]byte{0, 0, 0, 0xff, 0xfb}, make([]byte, 0xfffb)...) // 65 536 bytes
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 1 << 10 {
		_, _ = e.Write(message)
	}
	_, _ = e.Write([]byte{2, 0xff, 0xff, 0xff, 0xff}) // a last frame of 4 GiB
	for range 1 << 10 {
		_, _ = e.Write(part)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 16*maxEnd || len(e.last) != maxEnd {
		t.Errorf("got %d bytes allocated and %d kept, want at most %d kept", n, len(e.last), maxEnd)
	}
}

func FuzzEnding(f *testing.F) {
	for number := range codes {
		web, connect := lasts(number)
		f.Add([]byte(frame(0x81, zipped(web))), []byte(inText(frame(0x80, web))), []byte(frame(2, connect)))
	}
	f.Fuzz(func(t *testing.T, web, text, stream []byte) {
		for contentType, body := range map[string][]byte{"application/grpc-web": web, "application/grpc-web-text": text, "application/connect+json": stream} {
			whole, parts := EndingOf(http.Header{"Content-Type": {contentType}}), EndingOf(http.Header{"Content-Type": {contentType}})
			_, _ = whole.Write(body)
			for i := range body {
				_, _ = parts.Write(body[i : i+1])
			}
			if a, b := whole.Status(), parts.Status(); a != b || a != 0 && (a < 200 || a > 599) {
				t.Errorf("%s: got %d of the whole body and %d of its bytes", contentType, a, b)
			}
		}
	})
}
