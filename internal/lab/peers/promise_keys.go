package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/penstock-go/penstock/internal/lab/nottest"
)

// strange are keys that mean something to a store, or that look alike.
var strange = []string{
	"a", "A", "*", "?", "{a}", "}", "a|b", "a:b", "a/b", "/a//b", "a%2Fb", "[ab]", "a,b", `"a"`, strings.Repeat("x", 300) + "1", strings.Repeat("x", 300) + "2",
}

func keys(t *trial) verdict {
	l := t.open(quota{10, time.Hour})
	for range 3 {
		for _, key := range strange {
			l.ask(key, 1)
		}
	}
	for _, key := range strange {
		if left := l.admitted(key, 10); left != 7 {
			return broken("the client %.10q had %d of 10 left after 3 requests", key, left)
		}
	}
	if !t.library.pairs {
		return kept("16 clients count apart")
	}
	pairs := t.library.handler(t, quota{10, time.Hour}, byPair)
	for _, mark := range []string{":", "|", "/", ",", " "} {
		for range 10 {
			nottest.Must(ask(pairs, clientHeader, "a"+mark+"b", secondHeader, "c"))
		}
		if !nottest.Must(ask(pairs, clientHeader, "a", secondHeader, "b"+mark+"c")).allowed {
			return broken("the key of %q and %q was denied, because the key of %q and %q had used the limit", "a", "b"+mark+"c", "a"+mark+"b", "c")
		}
	}
	return kept("16 clients count apart, and so do keys of two parts")
}

func forged(t *trial) verdict {
	h := t.library.handler(t, quota{10, time.Hour}, byAddress)
	admitted := 0
	for i := range 40 {
		address := fmt.Sprint("198.51.100.", i+1)
		headers := []string{"Forwarded", "for=" + address}
		for _, name := range []string{"X-Forwarded-For", "X-Real-IP", "True-Client-IP", "CF-Connecting-IP", "X-Client-IP"} {
			headers = append(headers, name, address)
		}
		if nottest.Must(ask(h, headers...)).allowed { // all come from one address
			admitted++
		}
	}
	if admitted != 10 {
		return broken("%d of 40 requests of one connection were admitted at a limit of 10", admitted)
	}
	return kept("10 of 40 requests were admitted")
}
