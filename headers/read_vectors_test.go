// What Read makes of each dialect. Lines are separated by a line break.

package headers_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/headers"
)

const malformed = "malformed"

// itemVectors are values of RateLimit.
var itemVectors = []struct{ in, want string }{
	{`"default";r=50;t=30`, "default r50 t30"},
	{`"default";r=999;pk=:dHJpYWwxMjEzMjM=:`, `default r999 pk"trial121323"`},
	{`"a";r=1;t=2,"b";r=0;t=9`, "a r1 t2, b r0 t9"},
	{"\"a\";r=1\n\"b\";r=0;t=9", "a r1, b r0 t9"},
	{"\"a\";r=1\t,\t\"b\";r=2", "a r1, b r2"},
	{`"a"; r=1; t=2`, "a r1 t2"},
	{`"a";t=2;r=1`, "a r1 t2"},
	{`"a";r=1;r=7`, "a r7"},
	{`"a";r=1;acme-burst=5;x=?0;y;z=tok;d=1.5;s="q"`, "a r1"},
	{`"a";r=1;z=@1700000000;n=%"f%c3%bc"`, "a r1"},
	{`"per \"user\" \\ x";r=3;t=4`, `per "user" \ x r3 t4`},
	{`"";r=3`, " r3"},
	{`"a";r=0`, "a r0"},
	{`"a";r=0;t=0`, "a r0 t0"},
	{`"a";r=007;t=00`, "a r7 t0"},
	{`"a";r=-0;t=5`, "a r0 t5"},
	{`"a";r=999999999999999`, "a r999999999999999"},
	{`"a";r=1;pk=::`, `a r1 pk""`},
	{`"a";r=1;pk=:cHsdsRa894==:`, `a r1 pk"p{\x1d\xb1\x16\xbc\xf7"`},
	{`"a";r=1;pk=:sdfjLJUOUH==:`, `a r1 pk"\xb1\xd7\xe3,\x95\x0eP"`},
	{`"a";r=1;pk=:QQ:`, `a r1 pk"A"`},
	{`  "a";r=1  `, "a r1"},
	{`default;r=5;t=3`, "default r5 t3"},
	{`"a";a=50;w=30;pk=:R0VUH2FsaWNl:;c=1`, `a r50 t30 pk"GET\x1falice"`},
	{`"a";r=50;t=30;w=99`, "a r50 t30"},
	{`"a";r=5;a=9;t=1`, "a r5 t1"},
	{`limit=100, remaining=50, reset=5`, " r50 t5 q100"},
	{`limit=100, reset=5`, " t5 q100"},
	{`"ok";r=1, "bad";t=3`, "ok r1 malformed"},
	{`"ok";r=1, ("i" "j");r=2`, malformed},
	{"\"x\";r=2;t=3\n\"x\";r=1;t=9", "x r1 t9"},
	{"\"x\";r=1;t=9\n\"x\";r=2;t=3", "x r1 t9"},
	{"", ""},
	{`("a" 1;x "b"), "c";r=1`, malformed},
	{`"a";r=1;t=99999999999`, "a r1 tnever"},

	{`"a"`, malformed}, {`"a";t=5`, malformed}, {`"a";r`, malformed}, {`"a";r=-1`, malformed},
	{`"a";r=1.0`, malformed}, {`"a";r="1"`, malformed}, {`"a";r=1;t=-1`, malformed},
	{`"a";r=1;t=1.5`, malformed}, {`"a";r=1;pk="abc"`, malformed}, {`"a";r=1;pk=abc`, malformed},
	{`"a";r=1000000000000000`, malformed}, {`"a";r=1,`, malformed}, {`,"a";r=1`, malformed},
	{`"a";r=1,,"b";r=2`, malformed}, {"\"a\";r=1\n\n\"b\";r=2", malformed}, {`"a" ;r=1`, malformed},
	{`"a";r =1`, malformed}, {`"a";r= 1`, malformed}, {`"a";R=1`, malformed}, {`"a";r=1;`, malformed},
	{`"a;r=1`, malformed}, {`"a\b";r=1`, malformed}, {`"é";r=1`, malformed}, {"\"a\tb\";r=1", malformed},
	{`'a';r=1`, malformed}, {`"a";r=1;pk=:aGk=`, malformed}, {`"a";r=1;pk=:_-Ah:`, malformed},
	{`"a";r=1;pk=:=aGk:`, malformed}, {`42;r=1`, malformed}, {`("a");r=1`, malformed},
	{`"a";r=1 "b";r=2`, malformed}, {`"a";r=@`, malformed}, {`50, 50;w=60`, malformed},
	{`"a";r=1;x=%"%c`, malformed}, {`"a";r=1;x=%c`, malformed},
	{`"a";r=1;x=1.2345`, malformed}, {`"a";r=1;x=1234567890123.1`, malformed}, {`"a";r=1;x=?2`, malformed},
	{`"a";r=1;x=@1.5`, malformed}, {`("a"`, malformed}, {`("a""b");r=1`, malformed}, {`"ok";r=1, ("a""b")`, malformed}, {`"a";r=1;pk=:QQ=:`, malformed},
	{"\"a\";r=1;pk=:Q\rQ:", malformed}, {`limit=100, remaining=-1, reset=5`, malformed}, {`limit=100`, malformed},
	{strings.Repeat(`"a";r=1,`, 1200) + `"a";r=1`, malformed}, // more than 8 KiB
}

var policyVectors = []struct{ in, want string }{
	{`"burst";q=100;w=60,"daily";q=1000;w=86400`, "burst q100 w60 requests, daily q1000 w86400 requests"},
	{`"peruser";q=65535;qu="content-bytes";w=10;pk=:sdfjLJUOUH==:`, `peruser pk"\xb1\xd7\xe3,\x95\x0eP" q65535 w10 content-bytes`},
	{`"z";q=0`, "z q0 requests"},
	{`"a";q=1;qu="tokens"`, "a q1 tokens"},
	{`"a";q=1;qu="request"`, "a q1 requests"},
	{`100;w=60`, " q100 w60 requests"},
	{`10;w=1;burst=1000, 50;w=60`, " q10 w1 requests,  q50 w60 requests"},
	{`quota;q=100;w=1`, "quota q100 w1 requests"},
	{`"a";q=10;w=60, "b";w=60`, "a q10 w60 requests malformed"},
	{`"a";q=1;w=0`, malformed}, {`"a";q=-1`, malformed}, {`"a";w=60`, malformed},
	{`"a";q=1;qu=requests`, malformed}, {`"a";q=1;w=1.5`, malformed}, {`-1;w=5`, malformed},
}

func TestReadItems(t *testing.T) {
	for _, tt := range itemVectors {
		readField(t, "Ratelimit", tt.in, tt.want)
	}
	for _, tt := range policyVectors {
		readField(t, "Ratelimit-Policy", tt.in, tt.want)
	}
}

func readField(t *testing.T, key, in, want string) {
	t.Helper()
	h := http.Header{key: strings.Split(in, "\n")}
	if got := show1(headers.Read(http.StatusOK, h, at)); got != want {
		t.Errorf("%.80q of %s: got %s, want %s", in, key, got, want)
	}
}

// show1 returns Fields in one line.
func show1(f headers.Fields) string {
	var items []string
	for i := range f.Limits {
		items = append(items, showLimit(&f.Limits[i]))
	}
	text := strings.Join(items, ", ")
	if f.From != "" {
		text += fmt.Sprintf(" %s: %v", f.From, f.Wait)
	}
	if len(f.Malformed) > 0 {
		text += " " + malformed
	}
	if len(items) == 0 {
		return strings.TrimSpace(text)
	}
	return text
}

func showLimit(l *headers.ServiceLimit) string {
	var b strings.Builder
	b.WriteString(l.Name)
	number := func(name string, n int64, absent int64) {
		if n != absent {
			fmt.Fprintf(&b, " %s%d", name, n)
		}
	}
	number("r", l.Remaining, -1)
	if l.Within == headers.Never {
		b.WriteString(" tnever")
	} else if l.Within >= 0 {
		fmt.Fprintf(&b, " t%v", l.Within.Seconds())
	}
	if l.Partition != nil {
		fmt.Fprintf(&b, " pk%q", l.Partition)
	}
	number("q", l.Quota, -1)
	number("w", int64(l.Window.Seconds()), 0)
	if l.Unit != "" {
		b.WriteString(" " + l.Unit)
	}
	return b.String()
}
