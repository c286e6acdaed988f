package middleware_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// TestStatusRouteTable: a policy that stands for several routes is one row, with the offenders of all, and a mistake of
// several policies is told once.
func TestStatusRouteTable(t *testing.T) {
	status, memory := ratelimit.NewStatus(), newMemory(t)
	p := byIP("p", algorithms.TokenBucket(1, time.Hour))
	q := byIP("q", algorithms.TokenBucket(1, time.Hour))
	p.Cost, q.Cost = costOf(2), costOf(2)
	table, err := ratelimit.NewRouteTable(memory, &ratelimit.Options{Observer: status, Logger: quiet}, ratelimit.Routes{
		"GET /a": {p}, "GET /b": {p}, "*": {q},
	})
	if err != nil {
		t.Fatal(err)
	}
	status.Watch(table.Middlewares()...)
	mux := http.NewServeMux()
	for _, path := range []string{"/a", "/b", "/c"} {
		mux.Handle("GET "+path, ok)
	}
	h := table.Around(mux)
	for _, request := range []struct{ path, ip string }{
		{"/a", "192.0.2.1"}, {"/a", "192.0.2.1"}, {"/b", "192.0.2.1"}, {"/b", "192.0.2.2"}, {"/c", "192.0.2.1"},
	} {
		r := from(request.ip)
		r.URL.Path = request.path
		record(h, r)
	}
	v := look(t, status)
	if len(v.Policies) != 2 || v.Requests != 5 {
		t.Fatalf("got %d policies and %d requests, want 2 and 5", len(v.Policies), v.Requests)
	}
	byName := v.Policies[0]
	if byName.Name != "p" {
		byName = v.Policies[1]
	}
	if o := byName.Offenders; byName.Requests != 4 || len(o) != 2 || o[0].Denied != 3 || o[1].Denied != 1 {
		t.Errorf("got %+v, want 4 requests, and offenders with 3 and 1 denials", byName)
	}
	if len(v.Findings) != 3 {
		t.Errorf("got %v, want a finding of each middleware", v.Findings)
	}
	page := record(status, httptest.NewRequest("GET", "/?format=html", nil)).Body.String()
	if strings.Count(page, "<li>") != 1 || !strings.Contains(page, `Policies <span class="name">p</span>, <span class="name">q</span>`) || !strings.Contains(page, "1 finding<") {
		t.Errorf("got %d findings on the page, want one of two policies:\n%s", strings.Count(page, "<li>"), page)
	}
}
