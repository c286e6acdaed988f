// The promise about client addresses.

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"
)

// forged: One connection sends 40 requests to a limit of 10 per hour for each client address, set up as the
// documentation shows it, without a proxy. Each request has another address in X-Forwarded-For, X-Real-IP, Forwarded,
// True-Client-IP, CF-Connecting-IP and X-Client-IP. Exactly 10 are admitted.
func forged(t *trial) (verdict, error) {
	h, err := t.library.byAddress(t, quota{10, time.Hour}, served)
	if err != nil {
		return verdict{}, err
	}
	admitted := 0
	for i := range 40 {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = "192.0.2.1:4711"
		address := fmt.Sprint("198.51.100.", i+1)
		for _, name := range []string{"X-Forwarded-For", "X-Real-IP", "True-Client-IP", "CF-Connecting-IP", "X-Client-IP"} {
			r.Header.Set(name, address)
		}
		r.Header.Set("Forwarded", "for="+address)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		a, err := read(w.Code, w.Header())
		if err != nil {
			return verdict{}, err
		}
		if a.allowed {
			admitted++
		}
	}
	if admitted != 10 {
		return broken("%d of 40 requests of one connection were admitted at a limit of 10", admitted)
	}
	return kept("10 of 40 requests were admitted")
}
