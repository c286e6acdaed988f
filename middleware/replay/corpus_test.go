package replay

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// A sample is one line of a format. All lines tell of one request: 203.0.113.7 sends GET /v1/orders/7 at 10:00 on 28
// November 2026, and gets 200 after 26 ms, if the format has a duration. Refused formats do not tell all of that.
type sample struct {
	name, source, line string
	refused            error
	took               bool
}

const (
	apacheDoc  = "https://httpd.apache.org/docs/2.4/mod/mod_log_config.html"
	nginxDoc   = "https://nginx.org/en/docs/http/ngx_http_log_module.html"
	caddyDoc   = "https://caddyserver.com/docs/caddyfile/directives/log"
	traefikDoc = "https://doc.traefik.io/traefik/observability/access-logs/"
	envoyDoc   = "https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage"
	istioDoc   = "https://istio.io/latest/docs/tasks/observability/logs/access-log/"
	haproxyDoc = "https://docs.haproxy.org/3.0/configuration.html#8.2.3"
	albDoc     = "https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-access-logs.html"
	elbDoc     = "https://docs.aws.amazon.com/elasticloadbalancing/latest/classic/access-log-collection.html"
	cfDoc      = "https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/standard-logs-reference.html"
	w3cDoc     = "https://www.w3.org/TR/WD-logfile.html"
	gcpDoc     = "https://cloud.google.com/load-balancing/docs/https/https-logging-monitoring"
	slogDoc    = "https://go.dev/blog/slog"
	criDoc     = "https://kubernetes.io/docs/concepts/cluster-administration/logging/"
	dockerDoc  = "https://docs.docker.com/engine/logging/drivers/json-file/"
	composeDoc = "https://docs.docker.com/reference/cli/docker/compose/logs/"
	bsdDoc     = "https://www.rfc-editor.org/rfc/rfc3164"
	syslogDoc  = "https://www.rfc-editor.org/rfc/rfc5424"

	clf  = `203.0.113.7 - - [28/Nov/2026:10:00:00 +0000] "GET /v1/orders/7 HTTP/1.1" 200 5`
	clf2 = ` "-" "agent (x) 1.0"`

	caddyHead = `{"level":"info","ts":`
	caddyTail = `,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"203.0.113.7","remote_port":"5555","client_ip":"203.0.113.7","proto":"HTTP/2.0","method":"GET","host":"h","uri":"/v1/orders/7","headers":{"X":["{"]}},"bytes_read":0,"user_id":"","duration":0.026000001,"size":5,"status":200,"resp_headers":{}}`
	alb       = `2026-11-28T10:00:00.276000Z app/lb/50dc 203.0.113.7:5555 10.0.0.9:80 0.000 0.026 0.000 200 200 34 366 "GET https://h:443/v1/orders/7 HTTP/2.0" "agent 1" ECDHE TLSv1.2 arn:aws:x "Root=1-5" "h" "arn:aws:y" 0 2026-11-28T10:00:00.250000Z "forward" "-" "-" "10.0.0.9:80" "200" "-" "-"`
	elb       = `2026-11-28T10:00:00.250000Z lb 203.0.113.7:5555 10.0.0.9:80 0.001 0.024 0.001 200 200 0 29 "GET http://h:80/v1/orders/7 HTTP/1.1" "agent 1" - -`
	haproxy   = `203.0.113.7:5555 [28/Nov/2026:10:00:00.250] front~ back/s1 10/0/3/12/26 200 2750 - - ---- 1/1/1/1/0 0/0 {h|agent} {} "GET /v1/orders/7 HTTP/1.1"`
	envoy     = `[2026-11-28T10:00:00.250Z] "GET /v1/orders/7 HTTP/2" 200 - 0 5 26 25 "203.0.113.7" "agent 1" "cc21-b0" "h" "10.0.0.9:80"`
	istio     = `[2026-11-28T10:00:00.250Z] "GET /v1/orders/7 HTTP/1.1" 200 - via_upstream - "-" 0 5 26 25 "203.0.113.7,10.0.0.1" "agent 1" "cc21-b0" "h" "10.0.0.9:80" inbound|80|| 127.0.0.6:1 10.0.0.9:80 203.0.113.7:0 outbound_.80 default`
	istioJSON = `{"authority":"h","bytes_received":0,"bytes_sent":5,"downstream_local_address":"10.0.0.9:80","downstream_remote_address":"203.0.113.7:5555","duration":26,"method":"GET","path":"/v1/orders/7","protocol":"HTTP/1.1","response_code":200,"response_flags":"-","start_time":"2026-11-28T10:00:00.250Z","upstream_host":"10.0.0.9:80","x_forwarded_for":null}`
	slogJSON  = `{"time":"2026-11-28T10:00:00.25Z","level":"INFO","msg":"request","ip":"203.0.113.7","method":"GET","path":"/v1/orders/7","status":200,"duration":26000000}`
	slogText  = `time=2026-11-28T10:00:00.250Z level=INFO msg="a request" ip=203.0.113.7 method=GET path=/v1/orders/7 status=200 duration=26ms`
	gin       = `[GIN] 2026/11/28 - 10:00:00 | 200 |        26ms |     203.0.113.7 | GET      "/v1/orders/7"`
)

var samples = []sample{
	{"Apache common", apacheDoc, clf, nil, false},
	{"Apache combined", apacheDoc, clf + clf2, nil, false},
	{"Apache vhost_combined", apacheDoc, "shop.example:443 " + clf + clf2, nil, false},
	{"Apache vhost_common", apacheDoc, "shop.example " + clf, nil, false},
	{"Apache, an empty user", apacheDoc, strings.Replace(clf, "- - ", `- "" `, 1), nil, false},
	{"Apache, a vhost that is an address", apacheDoc, "10.0.0.7:443 " + clf, nil, false},
	{"Apache, a request that was never sent", apacheDoc, strings.Replace(clf, "GET /v1/orders/7 HTTP/1.1", "-", 1), errRequest, false},
	{"Apache, no client", apacheDoc, clf[len("203.0.113.7 - - "):], errAddress, false},
	{"Apache error log", apacheDoc, `[Sat Nov 28 10:00:00.250000 2026] [core:error] [pid 7] [client 203.0.113.7:5555] File does not exist: /v1`, errForm, false},
	{"nginx combined", nginxDoc, clf + clf2, nil, false},
	{"nginx main, with X-Forwarded-For last", nginxDoc, clf + clf2 + ` "198.51.100.1, 10.0.0.7"`, nil, false},
	{"nginx, X-Forwarded-For first: one address", nginxDoc, clf + clf2, nil, false},
	{"nginx, X-Forwarded-For first: a list", nginxDoc, "203.0.113.7, 10.0.0.7" + clf[11:], errAddress, false},
	{"nginx, X-Forwarded-For first: none", nginxDoc, "-" + clf[11:], errAddress, false},
	{"nginx, X-Forwarded-For and $remote_addr", nginxDoc, "198.51.100.1 " + clf, errAddress, false},
	{"nginx, proxy (client)", nginxDoc, "10.0.0.7 (203.0.113.7)" + clf[11:], errAddress, false},
	{"nginx, a user with spaces", nginxDoc, strings.Replace(clf, "- - ", "- the user ", 1), errAddress, false},
	{"nginx, a user that looks like a client", nginxDoc, strings.Replace(clf, "- - ", "- the user 192.0.2.66 - - ", 1), errAddress, false},
	{"nginx, a Unix socket", nginxDoc, "unix:" + clf[11:], errAddress, false},
	{"nginx, $time_iso8601 in brackets", nginxDoc, strings.Replace(clf, "28/Nov/2026:10:00:00 +0000", "2026-11-28T10:00:00+00:00", 1), errForm, false},
	{"nginx, escape=json", nginxDoc, `{"time_iso8601":"2026-11-28T10:00:00+00:00","remote_addr":"203.0.113.7","remote_user":"","request":"GET /v1/orders/7 HTTP/1.1","status":"200","request_time":"0.026"}`, nil, true},
	{"nginx, escape=json, $msec", nginxDoc, `{"msec":"1795860000.250","remote_addr":"203.0.113.7","request_method":"GET","request_uri":"/v1/orders/7","status":"200","request_time":"0.026"}`, nil, true},
	{"nginx, escape=json, behind a proxy", nginxDoc, `{"time_local":"28/Nov/2026:10:00:00 +0000","remote_addr":"10.0.0.7","http_x_real_ip":"203.0.113.7","request":"GET /v1/orders/7 HTTP/1.1","status":"200"}`, nil, false},
	{"nginx, escape=json, only a list", nginxDoc, `{"time_local":"28/Nov/2026:10:00:00 +0000","http_x_forwarded_for":"203.0.113.7, 10.0.0.7","request":"GET /v1/orders/7 HTTP/1.1","status":"200"}`, errAddress, false},
	{"nginx error log", nginxDoc, `2026/11/28 10:00:00 [error] 7#7: *1 open() "/v1/orders/7" failed, client: 203.0.113.7, server: h`, errForm, false},
	{"ingress-nginx", "https://kubernetes.github.io/ingress-nginx/user-guide/nginx-configuration/log-format/", clf + clf2 + ` 415 0.026 [default-orders-80] [] 10.0.0.9:80 5 0.026 200 cc21`, nil, false},
	{"Caddy, unix_seconds_float", caddyDoc, caddyHead + "1795860000.25" + caddyTail, nil, true},
	{"Caddy, unix_milli_float", caddyDoc, caddyHead + "1795860000250.0" + caddyTail, nil, true},
	{"Caddy, unix_nano", caddyDoc, caddyHead + "1795860000250000000" + caddyTail, nil, true},
	{"Caddy, iso8601", caddyDoc, caddyHead + `"2026-11-28T18:00:00.250+0800"` + caddyTail, nil, true},
	{"Caddy, rfc3339", caddyDoc, caddyHead + `"2026-11-28T10:00:00Z"` + caddyTail, nil, true},
	{"Caddy, rfc3339_nano", caddyDoc, caddyHead + `"2026-11-28T11:00:00.250000001+01:00"` + caddyTail, nil, true},
	{"Caddy, wall", caddyDoc, caddyHead + `"2026/11/28 10:00:00"` + caddyTail, nil, true},
	{"Caddy, wall_milli", caddyDoc, caddyHead + `"2026/11/28 10:00:00.250"` + caddyTail, nil, true},
	{"Caddy, wall_nano", caddyDoc, caddyHead + `"2026/11/28 10:00:00.250000001"` + caddyTail, nil, true},
	{"Caddy, common_log", caddyDoc, caddyHead + `"28/Nov/2026:10:00:00 +0000"` + caddyTail, nil, true},
	{"Traefik common", traefikDoc, clf + ` "-" "-" 1 "web@docker" "http://10.0.0.9:80" 26ms`, nil, true},
	{"Traefik JSON", traefikDoc, `{"ClientAddr":"10.0.0.7:5555","ClientHost":"203.0.113.7","ClientUsername":"-","DownstreamStatus":200,"Duration":26000000,"RequestMethod":"GET","RequestPath":"/v1/orders/7","StartUTC":"2026-11-28T10:00:00.25Z","time":"2026-11-28T10:00:00Z"}`, nil, true},
	{"Envoy text", envoyDoc, envoy, nil, true},
	{"Envoy text, a list", envoyDoc, strings.Replace(envoy, "7\" \"agent", "7,10.0.0.1\" \"agent", 1), errAddress, false},
	{"Envoy text, no X-Forwarded-For", envoyDoc, strings.Replace(envoy, "203.0.113.7", "-", 1), errAddress, false},
	{"Envoy JSON, sorted", envoyDoc, strings.Replace(istioJSON, `:200,`, `:200.0,`, 1), nil, true},
	{"Istio text", istioDoc, istio, nil, true},
	{"Istio JSON", istioDoc, istioJSON, nil, true},
	{"HAProxy httplog", haproxyDoc, haproxy, nil, true},
	{"HAProxy httplog in syslog", haproxyDoc, "Nov 28 10:00:00 lb haproxy[14389]: " + haproxy, nil, true},
	{"HAProxy, logasap", haproxyDoc, strings.Replace(haproxy, "/26 ", "/+26 ", 1), nil, true},
	{"HAProxy httpslog", haproxyDoc, haproxy + ` 0/0000/0/0/0 h/TLSv1.3/TLS_AES_128_GCM_SHA256`, nil, true},
	{"HAProxy, a bad request", haproxyDoc, strings.Replace(haproxy, "GET /v1/orders/7 HTTP/1.1", "<BADREQ>", 1), errRequest, false},
	{"HAProxy tcplog", haproxyDoc, `203.0.113.7:5555 [28/Nov/2026:10:00:00.250] front back/s1 0/0/26 212 -- 0/0/0/0/3 0/0`, errRequest, false},
	{"AWS ALB, https", albDoc, "https " + alb, nil, true},
	{"AWS ALB, h2", albDoc, "h2 " + alb, nil, true},
	{"AWS Classic ELB", elbDoc, elb, errForm, false},
	{"AWS NLB", "https://docs.aws.amazon.com/elasticloadbalancing/latest/network/load-balancer-access-logs.html", `tls 2.0 2026-11-28T10:00:00 net/lb/c6 g3d4 203.0.113.7:5555 10.0.0.9:443 5 2 98 246 - arn:aws:x - ECDHE tlsv12 - h - - - 2026-11-28T10:00:00`, errForm, false},
	{"AWS S3", "https://docs.aws.amazon.com/AmazonS3/latest/userguide/LogFormat.html", `79a5 bucket [28/Nov/2026:10:00:00 +0000] 203.0.113.7 79a5 3E57 REST.GET.OBJECT k "GET /v1/orders/7 HTTP/1.1" 200 - 113 - 7 - "-" "agent" -`, errRequest, false},
	{"CloudFront", cfDoc, "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs-uri-query time-taken\n2026-11-28\t10:00:00\tSEA19\t5\t203.0.113.7\tGET\th\t/v1/orders/7\t200\t-\t0.026", nil, true},
	{"CloudFront without its head", cfDoc, "2026-11-28\t10:00:00\tSEA19\t5\t203.0.113.7\tGET\th\t/v1/orders/7\t200\t-\t0.026", errForm, false},
	{"IIS", w3cDoc, "#Software: IIS\n#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip sc-status time-taken\n2026-11-28 10:00:00 10.0.0.9 GET /v1/orders/7 - 443 - 203.0.113.7 200 26", nil, true},
	{"Google's load balancer", gcpDoc, `{"httpRequest":{"latency":"0.026s","remoteIp":"203.0.113.7","requestMethod":"GET","requestUrl":"https://h/v1/orders/7","status":200},"insertId":"1v","timestamp":"2026-11-28T10:00:00.25Z"}`, nil, true},
	{"slog JSON", slogDoc, slogJSON, nil, true},
	{"slog text", slogDoc, slogText, nil, true},
	{"zerolog", "https://github.com/rs/zerolog", `{"level":"info","ip":"203.0.113.7","method":"GET","url":"/v1/orders/7","status":200,"duration":26.000001,"time":"2026-11-28T10:00:00Z","message":"request"}`, nil, true},
	{"zap", "https://github.com/uber-go/zap", `{"level":"info","ts":1795860000.25,"caller":"x.go:1","msg":"request","ip":"203.0.113.7","method":"GET","path":"/v1/orders/7","status":200,"latency":0.026}`, nil, true},
	{"logrus JSON", "https://github.com/sirupsen/logrus", `{"clientip":"203.0.113.7","latency":26000000,"level":"info","method":"GET","msg":"request","path":"/v1/orders/7","status":200,"time":"2026-11-28T10:00:00Z"}`, nil, true},
	{"logrus text", "https://github.com/sirupsen/logrus", `time="2026-11-28T10:00:00Z" level=info msg="a request" ip=203.0.113.7 method=GET path=/v1/orders/7 status=200 latency=26ms`, nil, true},
	{"echo", "https://echo.labstack.com/docs/middleware/logger", `{"time":"2026-11-28T10:00:00.25Z","id":"","remote_ip":"203.0.113.7","host":"h","method":"GET","uri":"/v1/orders/7","status":200,"error":"","latency":26000000,"latency_human":"26ms","bytes_in":0}`, nil, true},
	{"gin", "https://gin-gonic.com/en/docs/logging/", gin, nil, true},
	{"gin, in colours", "https://gin-gonic.com/en/docs/logging/", strings.Replace(gin, "| 200 |", "|\x1b[97;42m 200 \x1b[0m|", 1), errStatus, false},
	{"gin before 1.7", "https://gin-gonic.com/en/docs/logging/", strings.ReplaceAll(gin, `"`, ""), nil, true},
	{"chi", "https://github.com/go-chi/chi", `2026/11/28 10:00:00 [h/id-000001] "GET http://h/v1/orders/7 HTTP/1.1" from 203.0.113.7:5555 - 200 5B in 26ms`, errForm, false},
	{"Fiber", "https://docs.gofiber.io/api/middleware/logger", `10:00:00 | 200 |   26ms | 203.0.113.7 | GET | /v1/orders/7`, errForm, false},
	{"uvicorn", "https://www.uvicorn.org/settings/", `INFO:     203.0.113.7:5555 - "GET /v1/orders/7 HTTP/1.1" 200 OK`, errForm, false},
	{"Squid", "https://wiki.squid-cache.org/Features/LogFormat", `1795860000.250 26 203.0.113.7 TCP_MISS/200 5 GET http://h/v1/orders/7 - DIRECT/10.0.0.9 text/html`, errForm, false},
	{"docker, around text", dockerDoc, `{"log":"203.0.113.7 - - [28/Nov/2026:10:00:00 +0000] \"GET /v1/orders/7 HTTP/1.1\" 200 5\n","stream":"stdout","time":"2026-11-28T10:00:00.3Z"}`, nil, false},
	{"docker, around JSON", dockerDoc, `{"log":"{\"time\":\"2026-11-28T10:00:00.25Z\",\"ip\":\"203.0.113.7\",\"method\":\"GET\",\"path\":\"/v1/orders/7\",\"status\":200}\n","stream":"stdout","time":"2026-11-28T10:00:00.3Z"}`, nil, false},
	{"docker compose, in colours", composeDoc, "\x1b[36mnginx-1  | \x1b[0m" + clf, errAddress, false},
}

var prefixes = []struct{ name, source, text string }{
	{"none", bsdDoc, ""}, {"byte-order mark", "https://www.rfc-editor.org/rfc/rfc3629#section-6", "\xef\xbb\xbf"},
	{"BSD syslog", bsdDoc, "Nov 28 10:00:00 web1 nginx: "}, {"BSD syslog with priority", bsdDoc, "<134>Nov 28 10:00:00 10.0.0.5 nginx[7]: "},
	{"syslog", syslogDoc, "<134>1 2026-11-28T10:00:00.300Z web1 nginx 7 - - "}, {"rsyslog", "https://www.rsyslog.com/doc/configuration/templates.html", "2026-11-28T10:00:00.3+00:00 web1 nginx: "},
	{"HAProxy's short format", haproxyDoc, "<134>"}, {"syslog with structured data", syslogDoc, `<134>1 2026-11-28T10:00:00.300Z web1 nginx 7 - [a@1 b="c"] `},
	{"CRI", criDoc, "2026-11-28T10:00:00.300000001Z stdout F "}, {"docker compose", composeDoc, "nginx-1  | "},
	{"docker logs --timestamps", "https://docs.docker.com/reference/cli/docker/container/logs/", "2026-11-28T10:00:00.300000001Z "},
	{"kubectl logs --prefix", "https://kubernetes.io/docs/reference/kubectl/generated/kubectl_logs/", "[pod/nginx-7/nginx] "},
}

// TestCorpus: each format is read to its last line, with the facts that it tells, or refused to the last line.
func TestCorpus(t *testing.T) {
	t.Parallel()
	if n := len(samples) + len(prefixes); n < 60 {
		t.Errorf("got %d formats and prefixes, want 60", n)
	}
	for _, s := range samples {
		if !strings.HasPrefix(s.source, "https://") {
			t.Errorf("%s: got no source", s.name)
		}
		checkSample(t, s.name, s.line, s)
	}
	for _, prefix := range prefixes { // around text, JSON and pairs
		for _, s := range []sample{
			{line: clf + clf2}, {line: haproxy, took: true}, {line: envoy, took: true}, {line: istio, took: true}, {line: slogJSON, took: true},
			{line: istioJSON, took: true}, {line: slogText, took: true}, {line: gin, took: true}, {line: caddyHead + "1795860000.25" + caddyTail, took: true},
			{line: "203.0.113.7, 10.0.0.7" + clf[11:], refused: errAddress}, {line: "-" + clf[11:], refused: errAddress},
			{line: clf[len("203.0.113.7 - - "):], refused: errAddress},
		} {
			checkSample(t, prefix.name, prefix.text+s.line, s)
		}
		for _, s := range samples {
			if s.refused != nil || slices.Contains([]string{albDoc, cfDoc, w3cDoc, dockerDoc, composeDoc}, s.source) {
				continue // files of AWS and IIS have no prefix; the others are prefixes themselves
			}
			checkSample(t, prefix.name+", "+s.name, prefix.text+s.line, s)
		}
	}
}

// checkSample parses a text of one format, and compares its last line.
func checkSample(t *testing.T, name, text string, want sample) {
	t.Helper()
	p := parser{sampled: true}
	var got *entry
	var err error
	for range 2 { // the first reading is the sample
		for line := range strings.Lines(text) {
			got, err = p.parse([]byte(line))
		}
		if len(p.numbers) > 0 {
			p = parser{unit: unitOf(p.numbers)}
		}
	}
	if err != want.refused {
		t.Errorf("%s: got %v, want %v: %q", name, err, want.refused, text)
	}
	if want.refused != nil {
		return
	}
	const second = 1795860000 * micros
	if got.Address != "203.0.113.7" || got.Unknown || got.User != "" || got.Time/micros*micros != second || got.Method != "GET" || !strings.HasSuffix(got.Path, "/v1/orders/7") || got.Status != 200 {
		t.Errorf("%s: got %+v of %q", name, got, text)
	}
	if off := (got.Duration - 26*time.Millisecond).Abs(); want.took != got.Timed || want.took && off > time.Microsecond {
		t.Errorf("%s: got %v (%v) of %q, want 26 ms", name, got.Duration, got.Timed, text)
	}
}

// FuzzClient: the client of a line is in the line, or the line is refused. Prefixes are in front of some lines.
func FuzzClient(f *testing.F) {
	for i, s := range samples {
		f.Add(uint8(i), s.line)
	}
	f.Fuzz(func(t *testing.T, prefix uint8, text string) {
		var p parser
		for line := range strings.Lines(text) {
			got, err := p.parse([]byte(prefixes[int(prefix)%len(prefixes)].text + line))
			if err != nil || strings.ContainsAny(line, "\\\x1b") { // an escape may be part of a name
				continue
			}
			checkClient(t, got, line)
		}
	})
}

// checkClient compares what was read of a line with what the line has.
func checkClient(t *testing.T, got *entry, line string) {
	t.Helper()
	if got.Address == "" && got.User == "" || !strings.Contains(line, got.Address) || !strings.Contains(line, got.User) || strings.Contains(got.Address, ",") {
		t.Errorf("got the client %q and the user %q of %q", got.Address, got.User, line)
	}
	if _, ok := ipOf(got.Address); ok == got.Unknown {
		t.Errorf("got %q, unknown: %v, of %q", got.Address, got.Unknown, line)
	}
}

// FuzzPlaces: whatever text stands where a format has the client or the user, inside whatever prefix or docker's
// JSON, the client is in that text, and a list of addresses is refused. The user never becomes the client.
func FuzzPlaces(f *testing.F) {
	const user = "the-user"
	for i := range samples {
		f.Add(uint8(i), uint8(i), i%2 == 0, []string{"2001:db8::1", "client.example", "203.0.113.1, 10.0.0.7", "-", "10.0.0.7 (203.0.113.7)", "[::1]:80"}[i%6], []string{"-", "alice", "x 192.0.2.66 - y"}[i%3])
	}
	f.Fuzz(func(t *testing.T, format, prefix uint8, docker bool, client, name string) {
		s := samples[int(format)%len(samples)]
		line := strings.Replace(s.line, "203.0.113.7 - -", "203.0.113.7 - "+user, 1)
		line = strings.ReplaceAll(line, "203.0.113.7", client)
		line = strings.ReplaceAll(line, user, name)
		if s.refused != nil || strings.ContainsAny(client+name, "\"\\\n\r\x1b,") && !isList(client) { // a quote begins another field
			return
		}
		line = prefixes[int(prefix)%len(prefixes)].text + line
		if docker {
			wrapped, err := json.Marshal(map[string]string{"log": line + "\n", "stream": "stdout"})
			if err != nil {
				t.Fatal(err)
			}
			line = string(wrapped)
		}
		var p parser
		var got *entry
		var err error
		for part := range strings.Lines(line) {
			got, err = p.parse([]byte(part))
		}
		switch {
		case err != nil:
		case isList(client) && !strings.HasPrefix(s.name, "Traefik JSON"): // whose lists are of trusted proxies
			t.Errorf("%s: got %q of the list %q: %q", s.name, got.Address, client, line)
		case slices.Contains([]string{"", "-", "null"}, client) && got.Address == "10.0.0.7": // no proxy is in front
		case !strings.Contains(client+":5555", got.Address) && got.Address != client+":0":
			t.Errorf("%s: got %q of %q: %q", s.name, got.Address, client, line)
		}
	})
}

// isList reports whether a text ends with two addresses.
func isList(text string) bool {
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	for _, word := range words[max(0, len(words)-2):] {
		if _, err := netip.ParseAddr(word); err != nil {
			return false
		}
	}
	return len(words) > 1
}
