package replay

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// TestDoubts: there is no proposal where one address sends more than 90 % of the requests, or more than 1 % have none.
func TestDoubts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name         string
		top, unknown int // of 2 000 requests
		note         string
	}{
		{"90 %", 1_800, 0, ""}, {"more than 90 %", 1_802, 0, "is it your proxy?"},
		{"1 % unknown", 0, 20, ""}, {"more than 1 % unknown", 0, 21, "have no IP address"},
	} {
		var log strings.Builder
		begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for i := range 2_000 {
			address := fmt.Sprintf("10.0.0.%d", i%100)
			if i < tt.top {
				address = "192.0.2.1"
			} else if i < tt.top+tt.unknown {
				address = "client.example"
			}
			fmt.Fprintf(&log, `{"time":%q,"address":%q,"method":"GET","path":"/orders/7","status":200}`+"\n", begin.Add(time.Duration(i)*time.Second).Format(time.RFC3339), address)
		}
		p := reportOf(t, limited(t, "60/1m"), log.String(), Options{}).Policies[0]
		if (p.Proposal == nil) != (tt.note != "") || !strings.Contains(p.Note, tt.note) {
			t.Errorf("%s: got the proposal %+v and the note %q, want %q", tt.name, p.Proposal, p.Note, tt.note)
		}
	}
}

// TestPage: the page draws each point of the curve twice, and its drawing is well-formed.
func TestPage(t *testing.T) {
	t.Parallel()
	log := text(behaved(100, 20))
	curve := reportOf(t, limited(t, "20/1m"), log, Options{}).Policies[0].Curve
	var out bytes.Buffer
	if err := run(t, limited(t, "20/1m"), log, &out, Options{Format: "html"}); err != nil {
		t.Fatal(err)
	}
	_, svg, _ := strings.Cut(out.String(), "<svg")
	svg, _, found := strings.Cut(svg, "</svg>")
	lines := 0
	for d := xml.NewDecoder(strings.NewReader("<svg" + svg + "</svg>")); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("the drawing: %v", err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "polyline" {
			lines++
			for _, a := range e.Attr {
				if n := len(strings.Fields(a.Value)); a.Name.Local == "points" && n != len(curve) {
					t.Errorf("got %d points, want %d", n, len(curve))
				}
			}
		}
	}
	if !found || lines != 2 || len(curve) < points {
		t.Errorf("got %d lines of %d points, want 2 of %d", lines, len(curve), points)
	}
	for _, p := range curve {
		if !strings.Contains(out.String(), "<td>"+p.Limit+"<td>") {
			t.Errorf("the table lacks %s", p.Limit)
		}
	}
}

// TestUnfinished: what a server has written so far is read; the part of a line is left out, and named.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	var whole strings.Builder
	for i := range 20_000 {
		whole.WriteString(commonLine(i/10, fmt.Sprintf("/%d", i*7919%20_011)))
	}
	content := readAll(t, write(t, "a.log.gz", whole.String()))
	cut := filepath.Join(t.TempDir(), "cut.log.gz")
	if err := os.WriteFile(cut, content[:len(content)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	l, got := read(t, "", cut)
	if len(got) < 1_000 || len(got) > 19_000 || l.Bad > 0 || !slices.Equal(l.Cut, []string{"cut.log.gz"}) {
		t.Errorf("half of a compressed file: got %d lines, %d bad, %q", len(got), l.Bad, l.Cut)
	}
	name := write(t, "growing.log", commonLine(1, "/a")+commonLine(2, "/b")[:20])
	l, err := openLog([]string{name}, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(commonLine(2, "/b")[20:] + commonLine(3, "/c"))
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	if got := pathsOf(t, l); !slices.Equal(got, []string{"/a"}) || !slices.Equal(l.Cut, []string{"growing.log"}) {
		t.Errorf("a file that grows: got %q, %q unfinished", got, l.Cut)
	}
}

// TestUTF16: a text in UTF-16 is refused, with what to do.
func TestUTF16(t *testing.T) {
	t.Parallel()
	for _, big := range []int{0, 1} {
		var b []byte
		for _, unit := range utf16.Encode([]rune("\ufeff" + commonLine(1, "/a"))) {
			pair := [2]byte{byte(unit), byte(unit >> 8)}
			b = append(b, pair[big], pair[1-big])
		}
		if err := run(t, limited(t, "1/1m"), string(b), io.Discard, Options{}); err == nil || !strings.Contains(err.Error(), "convert it to UTF-8") {
			t.Errorf("got %v", err)
		}
	}
}

// TestMedian: the longest duration is exact, and the median is right to a twentieth.
func TestMedian(t *testing.T) {
	t.Parallel()
	var d durations
	for i := range 1_001 {
		d.add(time.Duration(i*i) * time.Microsecond)
	}
	if off := float64(d.median())/float64(250*time.Millisecond) - 1; off < -0.05 || off > 0.05 || d.longest != time.Second {
		t.Errorf("got the median %v and the longest %v, want 250 ms and 1 s", d.median(), d.longest)
	}
	if got := (&durations{}).median(); got != 0 {
		t.Errorf("got %v of nothing", got)
	}
}

// TestPairs: both takes of a pair are recorded, whichever admits the request.
func TestPairs(t *testing.T) {
	t.Parallel()
	for _, op := range []algorithms.Op{algorithms.TakeReserved, algorithms.TakeElse} {
		e := newEngine(nil)
		e.now = 1_000 * micros
		limit := algorithms.TokenBucket(1, time.Minute)
		for range 2 {
			checks := []algorithms.Check{{Policy: "share", Key: "a", Limit: limit, Cost: 1}, {Policy: "all", Key: "a", Limit: limit, Cost: 1, Op: op}}
			if err := e.Allow(t.Context(), checks); err != nil {
				t.Fatal(err)
			}
		}
		if got := e.history.keys; len(got) != 2 || got[0].requests != 2 || got[1].requests != 2 {
			t.Errorf("%v: got %d keys, want two with two requests", op, len(got))
		}
	}
}

// TestNoTrialsOfPairs: a trial judges a limit alone. So for policies with ShareBy or After, the report has the denials of the
// pair, and no other limit.
func TestNoTrialsOfPairs(t *testing.T) {
	t.Parallel()
	user := keyfunc.User(noUser)
	bucket := algorithms.TokenBucket(10, time.Minute)
	var log strings.Builder
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 2_000 { // a user's 20 requests come at once, each hour
		fmt.Fprintf(&log, `{"time":%q,"user":"u%d","method":"GET","path":"/orders/7","status":200}`+"\n", begin.Add(time.Duration(i/20)*time.Hour).Format(time.RFC3339), i/20%5)
	}
	for name, tt := range map[string]struct {
		policies []ratelimit.Policy
		denied   []int64 // of 2 000
		note     string
	}{
		"After, both fit":  {[]ratelimit.Policy{{Name: "a", Key: user, Limit: bucket}, {Name: "b", Key: user, Limit: bucket, After: "a"}}, []int64{0, 0}, "(After)"},
		"After, less fits": {[]ratelimit.Policy{{Name: "a", Key: user, Limit: bucket}, {Name: "b", Key: user, Limit: bucket.WithBurst(4), After: "a"}}, []int64{600, 600}, "(After)"},
		"ShareBy":          {[]ratelimit.Policy{{Name: "a", Key: keyfunc.Const("all"), Limit: bucket, ShareBy: user}}, []int64{1_000}, "(ShareBy)"},
		"ShareBy, shadow":  {[]ratelimit.Policy{{Name: "a", Key: keyfunc.Const("all"), Limit: bucket, ShareBy: user, Shadow: true}}, []int64{1_000}, "(ShareBy)"},
	} {
		r := reportOf(t, func(l algorithms.Limiter) (http.Handler, error) {
			m, err := ratelimit.New(l, nil, tt.policies...)
			if err != nil {
				return nil, err
			}
			return m.Handler(served), nil
		}, log.String(), Options{})
		if len(r.Policies) != len(tt.denied) {
			t.Errorf("%s: got %d policies, want %d", name, len(r.Policies), len(tt.denied))
			continue
		}
		for i, p := range r.Policies {
			if p.Proposal != nil || p.Smallest != "" || len(p.Curve) > 0 || !strings.Contains(p.Note, tt.note) {
				t.Errorf("%s: %s: got the proposal %+v, the smallest %q and the note %q, want the reason only", name, p.Policy, p.Proposal, p.Smallest, p.Note)
			}
			if got := p.Results[0].Denied; got != tt.denied[i] {
				t.Errorf("%s: %s: got %d denied, want %d", name, p.Policy, got, tt.denied[i])
			}
		}
	}
}
