package main

import (
	"strings"
	"testing"
	"time"
)

const events = `{"Action":"run","Package":"a","Test":"TestOne"}
{"Action":"run","Package":"a","Test":"TestOne/x"}
{"Action":"run","Package":"a","Test":"TestOne/y"}
{"Action":"pass","Package":"a","Test":"TestOne/x"}
{"Action":"fail","Package":"a","Test":"TestOne/y"}
{"Action":"fail","Package":"a","Test":"TestOne"}
{"Action":"fail","Package":"a","Test":"TestBusy"}
{"Action":"output","Package":"a","Test":"TestTwo","Output":"    a_test.go:7: cannot run here: KeyDB has no such thing\n"}
{"Action":"skip","Package":"a","Test":"TestTwo"}
{"Action":"skip","Package":"a","Test":"TestJob"}
{"Action":"fail","Package":"a"}
{"Action":"fail","Package":"b"}
`

// The table names each test once: failed, passed when it ran again, or impossible on that server.
func TestTableNamesTests(t *testing.T) {
	t.Parallel()
	r := report{server: "KeyDB", version: "6.3.4"}
	r.add(strings.NewReader(events))
	r.recheck(func(t testName) bool { return t.test == "TestBusy" })
	got := table([]report{r, {server: "Redis", version: "7.0.15", passed: 3}}, time.Unix(0, 0))
	for _, want := range []string{
		"on 1970-01-01",
		"| KeyDB | 6.3.4 | **2 fail** | 1 | 1 | 1 |\n| Redis | 7.0.15 | green | 3 | 0 | 0 |\n",
		"\n## Tests that a server cannot run\n\n- KeyDB 6.3.4: a TestTwo: KeyDB has no such thing\n\n",
		"\n## Tests that fail\n\n- KeyDB 6.3.4: a TestOne/y\n- KeyDB 6.3.4: b \n\n",
		"passed alone\n\n- KeyDB 6.3.4: a TestBusy\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got no %q in\n%s", want, got)
		}
	}
}
