package replay

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func micro(t *testing.T, text string) int64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMicro()
}

func TestParse(t *testing.T) {
	t.Parallel()
	at, fine := micro(t, "2026-10-10T11:55:36Z"), micro(t, "2026-10-10T11:55:36.25Z")
	tests := []struct {
		name, text string
		want       Line
	}{
		{
			"common", `192.0.2.1 - - [10/Oct/2026:13:55:36 +0200] "GET /a?b=1 HTTP/1.1" 200 2326`,
			Line{Time: at, Address: "192.0.2.1", Method: "GET", Path: "/a?b=1", Status: 200},
		},
		{
			"combined, with a user", `2001:db8::1 - alice [10/Oct/2026:11:55:36 +0000] "POST /a HTTP/2.0" 429 0 "-" "agent \"x\""`,
			Line{Time: at, Address: "2001:db8::1", User: "alice", Method: "POST", Path: "/a", Status: 429},
		},
		{
			"a quote in the path", `192.0.2.1 - - [10/Oct/2026:11:55:36 +0000] "GET /a\x22\"b HTTP/1.1" 404 -`,
			Line{Time: at, Address: "192.0.2.1", Method: "GET", Path: `/a""b`, Status: 404},
		},
		{
			"HTTP/0.9", `192.0.2.1 - - [10/Oct/2026:11:55:36 +0000] "GET /a" 200 1`,
			Line{Time: at, Address: "192.0.2.1", Method: "GET", Path: "/a", Status: 200},
		},
		{
			"a request to a proxy", `192.0.2.1 - - [10/Oct/2026:11:55:36 +0000] "GET http://h/a HTTP/1.1" 200 1`,
			Line{Time: at, Address: "192.0.2.1", Method: "GET", Path: "http://h/a", Status: 200},
		},
		{
			"CONNECT", `192.0.2.1 - - [10/Oct/2026:11:55:36 +0000] "CONNECT h:443 HTTP/1.1" 405 1`,
			Line{Time: at, Address: "192.0.2.1", Method: "CONNECT", Path: "h:443", Status: 405},
		},
		{
			"Python", `{"time":1791633336.25,"address":"192.0.2.1","method":"GET","path":"/a","status":200,"duration":5e-05}`,
			Line{Time: fine, Address: "192.0.2.1", Method: "GET", Path: "/a", Status: 200, Duration: 50 * time.Microsecond},
		},
		{
			"our JSON", `{"time":"2026-10-10T11:55:36.25Z","address":"192.0.2.1","user":"m|1","method":"GET","path":"/a","status":200,"bytes":5,"duration":0.012,"cost":7}`,
			Line{Time: fine, Address: "192.0.2.1", User: "m|1", Method: "GET", Path: "/a", Status: 200, Duration: 12 * time.Millisecond, Cost: 7},
		},
		{
			"nginx", `{ "msec": "1791633336.250", "remote_addr": "192.0.2.1", "remote_user": "-", "request": "GET /a HTTP/1.1", "status": "499", "request_time": "0.012" }`,
			Line{Time: fine, Address: "192.0.2.1", Method: "GET", Path: "/a", Status: 499, Duration: 12 * time.Millisecond},
		},
		{
			"a library", `{"level":"info","headers":{"a":["}",{}]},"ts":1791633336250,"ip":"192.0.2.1","Method":"GET","url":"/\u00e9","status":200,"latency":"12ms","ok":true,"err":null}`,
			Line{Time: fine, Address: "192.0.2.1", Method: "GET", Path: "/é", Status: 200, Duration: 12 * time.Millisecond},
		},
	}
	for _, tt := range tests {
		if tt.want.Cost == 0 {
			tt.want.Cost = -1
		}
		var p parser
		for range 2 { // the second line has the remembered time
			got, err := p.parse([]byte("  " + tt.text + "\r\n"))
			if err != nil || !same(got, tt.want) {
				t.Errorf("%s: got %+v and %v, want %+v", tt.name, got, err, tt.want)
			}
		}
	}
}

func same(a, b Line) bool {
	a.Settled, b.Settled = nil, nil
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text string
		want error
	}{
		{"", errForm},
		{"GET / HTTP/1.1", errForm},
		{`192.0.2.1 - - [] "GET / HTTP/1.1" 200 1`, errTime},
		{`192.0.2.1 - - [10/Okt/2026:11:55:36 +0000] "GET / HTTP/1.1" 200 1`, errTime},
		{`192.0.2.1 - - [10/Oct/2026:11:55:36 +0000]`, errTime},
		{`192.0.2.1 - - [10/Oct/2026:11:55:36 +0000] GET`, errRequest},
		{`192.0.2.1 - - [10/Oct/2026:11:55:36 +0000] "GET / HTTP/1.1`, errRequest},
		{`192.0.2.1 - - [10/Oct/2026:11:55:36 +0000] "-" 408 0`, errRequest},
		{`192.0.2.1 - - [10/Oct/2026:11:55:36 +0000] "\x16\x03\x01" 400 157`, errRequest},
		{`192.0.2.1 - - [10/Oct/2026:11:55:36 +0000] "GET / HTTP/1.1" ok 1`, errStatus},
		{`192.0.2.1 - - [10/Oct/1969:11:55:36 +0000] "GET / HTTP/1.1" 200 1`, errTime},
		{`{}`, errTime},
		{`{"time":"2026-10-10T11:55:36Z","method":"GET","path":"/"}`, errAddress},
		{`{"time":"2026-10-10T11:55:36Z","address":"a","path":"/"}`, errRequest},
		{`{"time":"2026-10-10T11:55:36Z","address":"a","method":"GET","path":"x"}`, errRequest},
		{`{"time":"yesterday"}`, errTime},
		{`{"status":"ok"}`, errStatus},
		{`{"a":1,}`, errJSON},
		{`{"a":[1}`, errJSON},
		{`{"a" 1}`, errJSON},
	}
	for _, tt := range tests {
		var p parser
		if _, err := p.parse([]byte(tt.text)); err != tt.want {
			t.Errorf("%s: got %v, want %v", tt.text, err, tt.want)
		}
	}
}

// FuzzParse: no line stops a replay, and no good line lacks what a replay needs.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`192.0.2.1 - - [10/Oct/2026:13:55:36 +0200] "GET /a\x22?b=1 HTTP/1.1" 200 2326 "-" "agent"`))
	f.Add([]byte(`{"time":1791633336.25,"address":"192.0.2.1","method":"GET","path":"/\u00e9","status":200,"settled":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var p parser
		l, err := p.parse(text)
		if err == nil && (l.Time < minTime || l.Time > maxTime || l.Address+l.User == "" || l.Method == "" || l.Path == "" || l.Duration < 0) {
			t.Errorf("%q: got %+v without an error", text, l)
		}
	})
}

// FuzzJSON: what is no JSON is refused, and JSON is refused for the values of its fields only.
func FuzzJSON(f *testing.F) {
	f.Add(`{"method":"GET","path":"/\u00e9\"","x":{"y":[1,"}"]},"z":null}`)
	f.Add(`{ "Method" : "a" , "status":-1e5, "n":[]}`)
	f.Fuzz(func(t *testing.T, text string) {
		if text = strings.TrimSpace(text); !strings.HasPrefix(text, "{") {
			return
		}
		var l Line
		var p parser
		err := p.parseJSON(&l, text)
		if valid := json.Valid([]byte(text)); valid && err == errJSON || !valid && err == nil {
			t.Errorf("%q: got %v", text, err)
		}
	})
}
