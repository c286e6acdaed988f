package headers

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"
)

// readyItems is how many items a quota keeps; a power of two.
const readyItems = 64

// ready holds the items of RateLimit that a quota has sent lately. Most clients
// have nearly all of a limit left, or nothing, so most responses repeat an
// item. A repeated item takes 50 ns and no allocation. A new item takes 170 ns
// and two allocations, and replaces an older item.
type ready [readyItems]atomic.Pointer[readyItem]

// A readyItem is immutable.
type readyItem struct {
	r, t int64 // t is 0 if there is none
	line [1]string
	wait [1]string // t alone, most often the value of Retry-After, too
}

// readyItem returns the item of a prepared quota with r and t.
func (q *Quota) readyItem(r, t int64) *readyItem {
	slot := &q.prepared.ready[uint64(r+t)%readyItems]
	item := slot.Load()
	if item == nil || item.r != r || item.t != t {
		var array [128]byte
		item = &readyItem{r: r, t: t}
		line := string(q.appendItem(array[:0], r, t))
		item.line[0], item.wait[0] = line, line[strings.LastIndexByte(line, '=')+1:]
		slot.Store(item)
	}
	return item
}

// appendItem appends the item of RateLimit, its parameters in the draft's
// order.
func (q *Quota) appendItem(buf []byte, r, t int64) []byte {
	buf = q.appendName(buf)
	buf = append(buf, ";r="...)
	buf = strconv.AppendInt(buf, r, 10)
	if t > 0 {
		buf = append(buf, ";t="...)
		buf = strconv.AppendInt(buf, t, 10)
	}
	return buf
}

// shareItem sets RateLimit if its value is one item that a quota has ready, and
// Retry-After if its value is that item's t. item reports whether RateLimit is
// done: shareItem has set it, or it has no value. wait reports whether
// shareItem has set Retry-After.
func shareItem(h http.Header, resp *Response) (item, wait bool) {
	if len(resp.States) != 1 {
		return len(resp.States) == 0, false
	}
	s := &resp.States[0]
	if !s.listed(resp.Denied) {
		return true, false
	}
	if len(h[keyRateLimit]) > 0 || s.Quota.prepared == nil {
		return false, false
	}
	ready := s.Quota.readyItem(s.remaining(), s.effective(resp.Denied))
	h[keyRateLimit] = ready.line[:]
	if resp.Denied && len(h[keyRetryAfter]) == 0 {
		if seconds, ok := retrySeconds(resp.wait()); ok && seconds == ready.t {
			h[keyRetryAfter], wait = ready.wait[:], true
		}
	}
	return true, wait
}

// sharePolicy sets RateLimit-Policy if one quota has its value ready. It
// reports whether RateLimit-Policy is done: sharePolicy has set it, or it has
// no value.
func sharePolicy(h http.Header, quotas []*Quota) bool {
	if len(quotas) != 1 {
		return len(quotas) == 0
	}
	if !quotas[0].made() || quotas[0].prepared == nil || len(h[keyPolicy]) > 0 {
		return false
	}
	h[keyPolicy] = quotas[0].prepared.policy
	return true
}

// readyPairs holds the pairs of scalars that a quota has sent lately: what remains, and
// the reset. A repeated pair takes no allocation. A new one takes as long as without
// readyPairs.
type readyPairs [readyItems]atomic.Pointer[readyPair]

// A readyPair is immutable. Its text is in the same allocation, unless it is long.
type readyPair struct {
	r, t             int64
	remaining, reset [1]string
	text             [32]byte
}

// readyPair returns the pair of a prepared quota with r and t. Under some rates, all r+t
// or all r-t of an instant are equal. So the place depends on a hash.
func (p *prepared) readyPair(r, t int64) *readyPair {
	slot := &p.pairs[(uint64(r)*0x9e3779b97f4a7c15+uint64(t)*0xc2b2ae3d27d4eb4f)>>32%readyItems]
	pair := slot.Load()
	if pair == nil || pair.r != r || pair.t != t {
		pair = &readyPair{r: r, t: t}
		buf := strconv.AppendInt(pair.text[:0], r, 10)
		n := len(buf)
		buf = strconv.AppendInt(buf, t, 10)
		text := unsafe.String(&buf[0], len(buf)) // the text never changes again
		pair.remaining[0], pair.reset[0] = text[:n], text[n:]
		slot.Store(pair)
	}
	return pair
}

// shareScalars sets the scalars of tight if its quota has them ready, unless the values
// of an outer limiter stay. It reports whether the scalars are done.
func (d Dialect) shareScalars(h http.Header, resp *Response, tight *State) bool {
	prepared := tight.Quota.prepared
	if prepared == nil {
		return false
	}
	for _, keys := range scalarFamilies {
		if d&keys.dialect != 0 && !prepared.share(h, keys, tight.numbers(resp, keys.unix), resp.Denied) {
			return false
		}
	}
	return true
}

// share sets the fields of keys, or reports that they have no reset.
func (p *prepared) share(h http.Header, keys *scalarKeys, n numbers, denied bool) bool {
	if !denied && n.yields(h, keys) {
		return true
	}
	if n.resets {
		pair := p.readyPair(n.remaining, n.reset)
		h[keys.limit], h[keys.remaining], h[keys.reset] = p.limit, pair.remaining[:], pair.reset[:]
	}
	return n.resets
}
