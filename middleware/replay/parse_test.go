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
		want       entry
	}{
		{
			"common", `192.0.2.1 - - [10/Oct/2026:13:55:36 +0200] "GET /a?b=1 HTTP/1.1" 200 2326`,
			entry{Time: at, Address: "192.0.2.1", Method: "GET", Path: "/a?b=1", Status: 200},
		},
		{
			"combined, with a user", `2001:db8::1 - alice [10/Oct/2026:11:55:36 +0000] "POST /a HTTP/2.0" 429 0 "-" "agent \"x\""`,
			entry{Time: at, Address: "2001:db8::1", User: "alice", Method: "POST", Path: "/a", Status: 429},
		},
		{
			"a quote in the path", `192.0.2.1 - - [10/Oct/2026:11:55:36 +0000] "GET /a\x22\"b HTTP/1.1" 404 -`,
			entry{Time: at, Address: "192.0.2.1", Method: "GET", Path: `/a""b`, Status: 404},
		},
		{
			"HTTP/0.9", `192.0.2.1 - - [10/Oct/2026:11:55:36 +0000] "GET /a" 200 1`,
			entry{Time: at, Address: "192.0.2.1", Method: "GET", Path: "/a", Status: 200},
		},
		{
			"a request to a proxy", `192.0.2.1 - - [10/Oct/2026:11:55:36 +0000] "GET http://h/a HTTP/1.1" 200 1`,
			entry{Time: at, Address: "192.0.2.1", Method: "GET", Path: "http://h/a", Status: 200},
		},
		{
			"CONNECT", `192.0.2.1 - - [10/Oct/2026:11:55:36 +0000] "CONNECT h:443 HTTP/1.1" 405 1`,
			entry{Time: at, Address: "192.0.2.1", Method: "CONNECT", Path: "h:443", Status: 405},
		},
		{
			"Python", `{"time":1791633336.25,"address":"192.0.2.1","method":"GET","path":"/a","status":200,"duration":5e-05}`,
			entry{Time: fine, Address: "192.0.2.1", Method: "GET", Path: "/a", Status: 200, Duration: 50 * time.Microsecond},
		},
		{
			"our JSON", `{"time":"2026-10-10T11:55:36.25Z","address":"192.0.2.1","user":"m|1","method":"GET","path":"/a","status":200,"bytes":5,"duration":0.012,"cost":7}`,
			entry{Time: fine, Address: "192.0.2.1", User: "m|1", Method: "GET", Path: "/a", Status: 200, Duration: 12 * time.Millisecond, Cost: 7},
		},
		{
			"nginx", `{ "msec": "1791633336.250", "remote_addr": "192.0.2.1", "remote_user": "-", "request": "GET /a HTTP/1.1", "status": "499", "request_time": "0.012" }`,
			entry{Time: fine, Address: "192.0.2.1", Method: "GET", Path: "/a", Status: 499, Duration: 12 * time.Millisecond},
		},
		{
			"a library", `{"level":"info","headers":{"a":["}",{}]},"ts":1791633336250,"ip":"192.0.2.1","Method":"GET","url":"/\u00e9","status":200,"latency":"12ms","ok":true,"err":null}`,
			entry{Time: fine, Address: "192.0.2.1", Method: "GET", Path: "/é", Status: 200, Duration: 12 * time.Millisecond},
		},
		{
			"Caddy 2.6", `{"level":"info","ts":1795490801.8292422,"logger":"http.log.access.log0","msg":"handled request","request":{"remote_ip":"127.0.0.1","remote_port":"45074","proto":"HTTP/1.1","method":"GET","host":"127.0.0.1:18431","uri":"/v1/orders/7?of=all","headers":{"User-Agent":["agent"],"Accept":["*/*"]}},"user_id":"","duration":0.000024647,"size":2,"status":200,"resp_headers":{"Server":["Caddy"],"Content-Type":["text/plain; charset=utf-8"]}}`,
			entry{Time: micro(t, "2026-11-24T03:26:41.829242Z"), Address: "127.0.0.1", Method: "GET", Path: "/v1/orders/7?of=all", Status: 200, Duration: 24_647},
		},
		{
			"Caddy 2.6, with a user", `{"level":"info","ts":1795490802.8804595,"logger":"http.log.access.log0","msg":"handled request","request":{"remote_ip":"127.0.0.1","remote_port":"45088","proto":"HTTP/1.1","method":"GET","host":"127.0.0.1:18431","uri":"/private/x","headers":{"Authorization":[],"User-Agent":["curl/7.88.1"],"Accept":["*/*"]}},"user_id":"alice","duration":1.039784313,"size":0,"status":0,"resp_headers":{"Server":["Caddy"]}}`,
			entry{Time: micro(t, "2026-11-24T03:26:42.880460Z"), Address: "127.0.0.1", User: "alice", Method: "GET", Path: "/private/x", Duration: 1_039_784_313},
		},
		{
			"Caddy behind a proxy that it trusts", `{"level":"info","ts":1795490801.5,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"10.0.0.1","remote_port":"41342","client_ip":"192.0.2.1","proto":"HTTP/2.0","method":"GET","host":"localhost","uri":"/","headers":{"User-Agent":["curl/7.82.0"]},"tls":{"resumed":false,"version":772,"cipher_suite":4865,"proto":"h2","server_name":"example.com"}},"bytes_read":0,"user_id":"","duration":0.5,"size":10900,"status":200,"resp_headers":{"Server":["Caddy"]}}`,
			entry{Time: micro(t, "2026-11-24T03:26:41.5Z"), Address: "192.0.2.1", Method: "GET", Path: "/", Status: 200, Duration: 500 * time.Millisecond},
		},
		{
			"Traefik", `{"ClientAddr":"10.0.0.1:31073","ClientHost":"192.0.2.1","ClientPort":"31073","ClientUsername":"-","DownstreamContentSize":75,"DownstreamStatus":404,"Duration":1964899,"OriginContentSize":75,"OriginDuration":1694568,"OriginStatus":500,"Overhead":270331,"RequestAddr":"orders.example","RequestContentSize":0,"RequestCount":1,"RequestHost":"orders.example","RequestMethod":"GET","RequestPath":"/v1/orders/7?of=all","RequestPort":"-","RequestProtocol":"HTTP/1.1","RequestScheme":"http","RetryAttempts":0,"RouterName":"http-0@docker","ServiceAddr":"192.168.156.12:3000","ServiceName":"http-0@docker","ServiceURL":"http://192.168.156.12:3000","StartLocal":"2026-02-28T13:11:34.10912886+01:00","StartUTC":"2026-02-28T12:11:34.10912886Z","entryPointName":"http","level":"info","msg":"","time":"2026-02-28T13:11:34+01:00"}`,
			entry{Time: micro(t, "2026-02-28T12:11:34.109128Z"), Address: "192.0.2.1", Method: "GET", Path: "/v1/orders/7?of=all", Status: 404, Duration: 1_964_899},
		},
		{
			"Traefik before 3.0, with a user", `{"ClientAddr":"192.0.2.1:49880","ClientHost":"192.0.2.1","ClientPort":"49880","ClientUsername":"alice","DownstreamContentSize":19,"DownstreamStatus":429,"Duration":204055,"Overhead":204055,"RequestAddr":"orders.example","RequestMethod":"POST","RequestPath":"/","RequestProtocol":"HTTP/1.1","ServiceURL":{"Scheme":"http","Host":"10.0.0.50:3000","Path":""},"StartLocal":"2026-06-05T04:03:22.742209746Z","StartUTC":"2026-06-05T04:03:22.742209746Z","level":"info","msg":"","time":"2026-06-05T04:03:22Z"}`,
			entry{Time: micro(t, "2026-06-05T04:03:22.742209Z"), Address: "192.0.2.1", User: "alice", Method: "POST", Path: "/", Status: 429, Duration: 204_055},
		},
	}
	for _, tt := range tests {
		if tt.want.Cost == 0 {
			tt.want.Cost = -1
		}
		var p parser
		for range 2 { // the second line has the remembered time
			got, err := p.parse([]byte("  " + tt.text + "\r\n"))
			if err != nil || !same(*got, tt.want) {
				t.Errorf("%s: got %+v and %v, want %+v", tt.name, *got, err, tt.want)
			}
		}
	}
}

func same(a, b entry) bool {
	a.Settled, b.Settled, a.Timed, b.Timed = nil, nil, false, false
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
		{`192.0.2.1 - - [] "GET / HTTP/1.1" 200 1`, errForm},
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
		{`{"request":{"method":"GET"`, errJSON},
		{`{"request":{}}`, errTime},
		{`{"request":"{"}`, errRequest},
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
		var l entry
		var p parser
		err := p.parseJSON(&l, []byte(text))
		if valid := json.Valid([]byte(text)); valid && err == errJSON || !valid && err == nil {
			t.Errorf("%q: got %v", text, err)
		}
	})
}
