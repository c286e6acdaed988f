package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

func TestLogins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limited, err := limits(algorithms.NewMemory(nil))
		if err != nil {
			t.Fatal(err)
		}
		h := limited.Handler(http.HandlerFunc(login))
		try := func(ip, account, password string) *httptest.ResponseRecorder {
			r := httptest.NewRequest("POST", "/login", strings.NewReader(fmt.Sprintf(`{"account":%q,"password":%q}`, account, password)))
			r.RemoteAddr = ip + ":1234"
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			synctest.Wait() // for the units of a success
			return w
		}
		for i := range 30 { // successes do not count
			if w := try("192.0.2.1", "ann", "swordfish"); w.Code != 200 {
				t.Fatalf("success %d: got status %d", i, w.Code)
			}
		}
		for i := range 6 { // from any address, in any spelling
			w := try(fmt.Sprint("198.51.100.", i), []string{"bob", "Bob ", "BOB"}[i%3], "guess")
			if want := map[bool]int{true: 401, false: 429}[i < 5]; w.Code != want {
				t.Errorf("failure %d: got status %d, want %d", i, w.Code, want)
			}
			if i == 5 && (w.Header().Get("Retry-After") != "600" || strings.Contains(fmt.Sprint(w.Header(), w.Body), "account")) {
				t.Errorf("got %v %s, want a wait and no word of the account", w.Header(), w.Body)
			}
		}
		if w := try("192.0.2.1", "bob", "swordfish"); w.Code != 429 {
			t.Errorf("got status %d of the owner, want 429", w.Code)
		}
		for i := range 41 { // 20 failures on many accounts, 20 denials, and then the ban
			try("203.0.113.9", fmt.Sprint("carol", i), "guess")
		}
		time.Sleep(time.Second)
		w := try("203.0.113.9", "dave", "swordfish")
		if w.Code != 429 || w.Header().Get("Retry-After") != "1199" || !strings.Contains(w.Body.String(), "abnormal-usage-detected") {
			t.Errorf("got %d %v %s, want a ban of 20 minutes that is a second old", w.Code, w.Header(), w.Body)
		}
		if w := try("192.0.2.1", "ann", "swordfish"); w.Code != 200 {
			t.Errorf("got status %d of another account and address", w.Code)
		}
		if w := try("192.0.2.1", "", "x"); w.Code != 400 {
			t.Errorf("got status %d without an account", w.Code)
		}
	})
}
