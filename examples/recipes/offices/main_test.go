package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/penstock-go/penstock/algorithms"
)

func TestOffices(t *testing.T) { synctest.Test(t, testOffices) }

func testOffices(t *testing.T) {
	limited, err := limits(algorithms.NewMemory(nil))
	if err != nil {
		t.Fatal(err)
	}
	h := authenticate(limited.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	admitted := func(n int, ip func(int) string, user string) (count int) {
		for i := range n {
			r := httptest.NewRequest("GET", "/", nil)
			if r.RemoteAddr = "[" + ip(i) + "]:1234"; user != "" {
				r.SetBasicAuth(user, "swordfish")
			}
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code == 200 {
				count++
			}
		}
		return count
	}
	office := func(int) string { return "192.0.2.1" }
	for _, tt := range []struct {
		name string
		got  int
		want int
	}{
		{"two users of an office have a limit each", admitted(70, office, "ann") + admitted(70, office, "bob"), 120},
		{"its visitors share one", admitted(70, office, ""), 60},
		{"addresses of one /64 are one client", admitted(70, func(i int) string { return fmt.Sprintf("2001:db8:1:1::%x", i+1) }, ""), 60},
		{"a /48 that rotates its /64s", admitted(500, func(i int) string { return fmt.Sprintf("2001:db8:2:%x::1", i) }, ""), 300},
		{"another /48", admitted(70, func(int) string { return "2001:db8:3::1" }, ""), 60},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: got %d requests admitted, want %d", tt.name, tt.got, tt.want)
		}
	}
}
