// Whether the settings of proxies still describe the proxies.

package findings

import (
	"hash/maphash"
	"net/http"
	"slices"

	"github.com/penstock-go/penstock/internal/keyaccess"
)

// window is the number of judged requests after which proxies decides. A setting
// is stale if it found no client in most of them.
const window = 64

// A load balancer is counted as the client if three of four requests in a window
// have an entry left of the chosen address, and these entries are many: fewest
// different ones at least, and perChosen for each chosen address.
const (
	fewest    = 16
	perChosen = 4
)

// staleCauses are the findings of requests whose client was not found.
var staleCauses = map[keyaccess.Origin]cause{
	keyaccess.Untrusted:   untrustedPeer,
	keyaccess.NoAddress:   peerWithoutAddress,
	keyaccess.NoHeader:    noHeader,
	keyaccess.OtherHeader: noHeader,
	keyaccess.FewHops:     fewHops,
	keyaccess.Unreadable:  unreadable,
}

// proxies counts where requests had their client's address. It remembers hashes
// only.
type proxies struct {
	judged       int
	stale        [causes]int
	chosen, left [window]uint64 // of requests with an entry left of the client: the client, and the entry
	entries      int            // in chosen and left

	checks  [8]uint64 // requests of proxies without a header that were last seen
	rotates int       // the place of the next one
}

var seed = maphash.MakeSeed()

// SeeAddress shows where a sampled request had its client's address.
func (p *Policy) SeeAddress(a keyaccess.Address, r *http.Request) {
	if a.Origin == keyaccess.NoProxies || a.Origin == keyaccess.Direct {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proxies == nil {
		p.proxies = new(proxies)
	}
	s := p.proxies
	if a.Origin == keyaccess.NoHeader && s.repeats(r) {
		return
	}
	if c, stale := staleCauses[a.Origin]; stale {
		s.stale[c]++
	} else if a.Left != "" {
		address := a.Client.As16()
		s.chosen[s.entries], s.left[s.entries] = maphash.Bytes(seed, address[:]), maphash.String(seed, a.Left)
		s.entries++
	}
	if s.judged++; s.judged == window {
		p.judgeProxies()
	}
}

// repeats reports whether a proxy has lately sent the same request without a
// header: a health check, which no client has caused. One of another path or
// client program is none.
func (s *proxies) repeats(r *http.Request) bool {
	var h maphash.Hash
	h.SetSeed(seed)
	_, _ = h.WriteString(r.URL.Path)
	_, _ = h.WriteString("\x00" + r.UserAgent())
	if slices.Contains(s.checks[:], h.Sum64()) {
		return true
	}
	s.checks[s.rotates%len(s.checks)] = h.Sum64()
	s.rotates++
	return false
}

// judgeProxies decides on a full window, and begins the next one. More than half of
// a window begins a finding, and less than a quarter ends it: with one threshold,
// each window could log a line.
func (p *Policy) judgeProxies() {
	s := p.proxies
	most, sum := cause(0), 0
	for c, n := range s.stale {
		if sum += n; n > s.stale[most] {
			most = cause(c)
		}
	}
	switch {
	case sum > window/2:
		p.found(most)
		p.endedStale(most)
	case sum < window/4:
		p.endedStale(causes)
	}
	switch n := distinct(s.left[:s.entries]); {
	case s.entries < window/2:
		p.ended(balancerCounted)
	case s.entries >= window*3/4 && n >= fewest && n >= perChosen*distinct(s.chosen[:s.entries]):
		p.found(balancerCounted)
	}
	s.judged, s.stale, s.entries = 0, [causes]int{}, 0
}

// endedStale ends the findings of stale settings, except one.
func (p *Policy) endedStale(except cause) {
	for _, c := range staleCauses {
		if c != except {
			p.ended(c)
		}
	}
}

// distinct returns the number of different hashes. It changes their order.
func distinct(hashes []uint64) int {
	slices.Sort(hashes)
	return len(slices.Compact(hashes))
}
