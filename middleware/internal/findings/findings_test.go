package findings

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/keyaccess"
	"github.com/penstock-go/penstock/internal/logwriter"
)

// A lineCounter is a log that counts its lines.
type lineCounter struct {
	slog.Handler
	n atomic.Int64
}

func (c *lineCounter) Enabled(context.Context, slog.Level) bool  { return true }
func (c *lineCounter) Handle(context.Context, slog.Record) error { c.n.Add(1); return nil }
func (c *lineCounter) WithAttrs([]slog.Attr) slog.Handler        { return c }

// newFinder returns a Finder and its log.
func newFinder() (*Finder, *lineCounter, *logwriter.Writer) {
	lines := new(lineCounter)
	w := logwriter.New(slog.New(lines))
	return New(w, time.Now()), lines, w
}

// TestFindingsAreLoggedOnce, however many requests show the cause at once.
func TestFindingsAreLoggedOnce(t *testing.T) {
	const findings = 900 // a logwriter.Writer holds no more lines
	f, lines, log := newFinder()
	policies := make([]*Policy, findings)
	for i := range policies {
		policies[i] = f.Policy("p", false, true, false)
	}
	var wg sync.WaitGroup
	var arrived atomic.Int64
	for range 2 {
		wg.Go(func() {
			for i := range policies {
				for arrived.Add(1); arrived.Load() < int64(2*(i+1)); { // both begin at once
					runtime.Gosched()
				}
				policies[i].See(&Sight{UnknownTier: true})
			}
		})
	}
	wg.Wait()
	log.Close()
	if got := lines.n.Load(); got != findings {
		t.Errorf("got %d lines, want %d", got, findings)
	}
}

// codes returns the codes of a policy's findings.
func codes(p *Policy) (all []string) {
	for _, f := range p.Append(nil) {
		all = append(all, f.Code)
	}
	return all
}

// TestSights: each cause is found after as many requests as prove it.
func TestSights(t *testing.T) {
	for name, tt := range map[string]struct {
		sight  Sight
		byPeer bool
		after  int
		want   string
	}{
		"above burst":      {Sight{AboveBurst: true}, false, 1, "PS107"},
		"nested":           {Sight{Sampled: true, Nested: true, Key: "ip=1"}, false, 1, "PS105"},
		"not sampled":      {Sight{Nested: true, Key: "rt=unmatched"}, true, 1000, ""},
		"forwarded":        {Sight{Sampled: true, Key: "ip=1", Header: map[string][]string{"Forwarded": {"for=1"}}}, true, forwardedFor, "PS101"},
		"trusts a proxy":   {Sight{Sampled: true, Key: "ip=1", Header: map[string][]string{"Forwarded": {"for=1"}}}, false, 1000, ""},
		"no route":         {Sight{Sampled: true, Key: "ip=1|rt=unmatched"}, false, judgedAfter, "PS104"},
		"a slowed address": {Sight{Sampled: true, Slowed: true, Key: "usr=1|rt=GET%20/"}, false, 1, "PS114"},
		"a mount point":    {Sight{Sampled: true, Key: "rt=/api/*", Path: "/api/x"}, false, judgedAfter, "PS111"},
	} {
		t.Run(name, func(t *testing.T) {
			f, _, _ := newFinder()
			p := f.Policy("p", tt.byPeer, true, false)
			for range tt.after - 1 {
				p.See(&tt.sight)
			}
			if got := codes(p); len(got) != 0 {
				t.Errorf("got %v after %d requests, want none yet", got, tt.after-1)
			}
			p.See(&tt.sight)
			if got := codes(p); tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 1 || got[0] != tt.want) {
				t.Errorf("got %v after %d requests, want %q", got, tt.after, tt.want)
			}
		})
	}
}

// TestUnknownRouteOfASmallLimit: denied requests show it, too, and the first known route ends it.
func TestUnknownRouteOfASmallLimit(t *testing.T) {
	f, _, _ := newFinder()
	p := f.Policy("p", false, true, false)
	for range judgedAfter {
		p.See(&Sight{Sampled: true, Key: "rt=unmatched"})
	}
	if got := codes(p); len(got) != 1 || got[0] != "PS104" {
		t.Errorf("got %v, want PS104", got)
	}
	p.See(&Sight{Sampled: true, Key: "rt=GET%20/v1"})
	if got := codes(p); len(got) != 0 {
		t.Errorf("got %v after a known route, want none", got)
	}
	for range 2 * judgedAfter {
		p.See(&Sight{Sampled: true, Key: "rt=unmatched"})
	}
	if got := codes(p); len(got) != 0 {
		t.Errorf("got %v of probes after a known route, want none", got)
	}
}

// TestInstantHolds: a hundred holds must be instant, and two of three.
func TestInstantHolds(t *testing.T) {
	f, _, _ := newFinder()
	p := f.Policy("p", false, false, false)
	see := func(n int, d time.Duration, want int) {
		t.Helper()
		for range n {
			p.SeeHold(Hold{Lasted: d})
		}
		if got := codes(p); len(got) != want || want > 0 && got[0] != "PS112" {
			t.Errorf("got %v after %d holds of %v, want %d findings", got, n, d, want)
		}
	}
	see(99, time.Microsecond, 0)
	see(1, time.Microsecond, 1)
	see(50, time.Millisecond, 1) // the machine was busy
	see(1, time.Millisecond, 0)
	see(1, time.Microsecond, 0)
	see(1, time.Microsecond, 1)
}

// TestStaleProxies: the most frequent reason of most requests in a window is found, and a good window ends it. A mixed one
// changes nothing.
func TestStaleProxies(t *testing.T) {
	f, lines, log := newFinder()
	p := f.Policy("p", false, false, false)
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	see := func(n int, origin keyaccess.Origin) {
		for range n {
			p.SeeAddress(keyaccess.Address{Origin: origin}, r)
		}
	}
	wants := func(when, sentence string) {
		t.Helper()
		if got := p.Append(nil); sentence == "" && len(got) > 0 || sentence != "" && (len(got) != 1 || got[0].Code != "PS113" || !strings.Contains(got[0].Sentence, sentence)) {
			t.Errorf("%s: got %v, want %q", when, got, sentence)
		}
	}
	see(10*window, keyaccess.NoProxies)
	see(10*window, keyaccess.Direct)
	see(10*window, keyaccess.NoHeader) // one health check
	wants("neutral requests", "")
	see(window-2, keyaccess.FewHops)
	wants("a window that is not full", "")
	see(1, keyaccess.Untrusted)
	wants("a full window", "IPOptions.Hops")
	see(window/2, keyaccess.Forwarded)
	see(window/2, keyaccess.Untrusted)
	wants("a mixed window", "IPOptions.Hops")
	see(window/4, keyaccess.Untrusted)
	see(window/2, keyaccess.OtherHeader)
	see(window/4, keyaccess.Forwarded)
	wants("another reason", "lack the forwarding header")
	see(window/4-1, keyaccess.Unreadable)
	see(window*3/4+1, keyaccess.Forwarded)
	wants("a good window", "")
	log.Close()
	if got := lines.n.Load(); got != 2 {
		t.Errorf("got %d lines in the log, want 2", got)
	}
}

// TestBalancerCounted: many entries beside few chosen addresses are found. Few entries, and many chosen addresses, are not.
func TestBalancerCounted(t *testing.T) {
	for name, tt := range map[string]struct {
		chosen, left int // different ones
		beside       int // how many of four requests have an entry left of the client
		want         int
	}{
		"one balancer":           {1, window, 4, 1},
		"four":                   {4, fewest, 4, 1},
		"too many for a few":     {5, fewest, 4, 0},
		"one proxy of a client":  {1, fewest - 1, 4, 0},
		"clients":                {window, window, 4, 0},
		"three of four requests": {1, window, 3, 1},
		"half of them":           {1, window, 2, 0},
	} {
		f, _, _ := newFinder()
		p := f.Policy("p", false, false, false)
		for i := range window {
			a := keyaccess.Address{Origin: keyaccess.Forwarded, Client: netip.AddrFrom4([4]byte{203, 0, 113, byte(i % tt.chosen)})}
			if i%4 < tt.beside {
				a.Left = strconv.Itoa(i % tt.left)
			}
			p.SeeAddress(a, httptest.NewRequest(http.MethodGet, "/", nil))
		}
		if got := codes(p); len(got) != tt.want || tt.want > 0 && got[0] != "PS115" {
			t.Errorf("%s: got %v, want %d findings", name, got, tt.want)
		}
	}
}

// TestFreshKeys: a thousand keys without a repetition are PS118, and the first repetition ends it for good.
func TestFreshKeys(t *testing.T) {
	f, _, _ := newFinder()
	p, never := f.Policy("p", false, false, false), f.Policy("q", false, false, false)
	for i := range freshAfter - 1 {
		p.See(&Sight{Sampled: true, Key: "hdr=" + strconv.Itoa(i)})
	}
	if got := codes(p); len(got) != 0 {
		t.Errorf("got %v after %d keys, want none yet", got, freshAfter-1)
	}
	p.See(&Sight{Sampled: true, Key: "hdr=last"})
	if got := codes(p); len(got) != 1 || got[0] != "PS118" {
		t.Errorf("got %v after %d keys, want PS118", got, freshAfter)
	}
	p.See(&Sight{Sampled: true, Key: "hdr=7"})
	if got := codes(p); len(got) != 0 {
		t.Errorf("got %v after a key came again, want none", got)
	}
	for i := range 2 * freshAfter {
		p.See(&Sight{Sampled: true, Key: "again=" + strconv.Itoa(i)})
		never.See(&Sight{Sampled: true, Key: "ip=" + strconv.Itoa(i/2)})
	}
	if got := append(codes(p), codes(never)...); len(got) != 0 {
		t.Errorf("got %v, want none after a repetition", got)
	}
}
