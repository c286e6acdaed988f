package headers

import (
	"encoding/base64"
	"net/http"
	"strconv"
)

// Keys of [http.Header] in canonical form, which need no canonicalisation here
// and which Get finds. HTTP/1.1 therefore shows "Ratelimit", HTTP/2 "ratelimit".
const (
	keyRateLimit  = "Ratelimit"
	keyPolicy     = "Ratelimit-Policy"
	keyRetryAfter = "Retry-After"
)

// Write adds the fields of the dialect to h, which must not be nil. It keeps
// nothing of resp; values in h may be shared with a [Quota], so replace them
// rather than edit them in place. Call it before the response begins; any status
// may carry the fields.
//
//   - RateLimit (Draft) has an item for each State: the least r first, as naive
//     clients read only that, then in the given order. On a denial it has the
//     denied ones, in the given order. RateLimit-Policy (Draft, Triple) has all
//     Quotas. Both become a further line if there is one already, so limiters
//     may be stacked.
//   - The other numbers (Triple, X) are scalars. They speak of the State with
//     the least r/q, on a denial of the denied one with the longest wait; the
//     first given of equals. If an outer limiter has set them, an admitted
//     response keeps whichever is nearer to its limit, a denial replaces them.
//   - Retry-After is for denials only; see [SetRetryAfter].
//
// Without a State to speak of there are no numbers, e.g. if only policies
// denied that are not advertised.
func (d Dialect) Write(h http.Header, resp Response) {
	d = d.orDefault()
	var shared, waits bool
	if d&Draft != 0 {
		shared, waits = shareItem(h, &resp)
	}
	items := d&Draft != 0 && !shared
	policies := d&(Draft|Triple) != 0 && !sharePolicy(h, resp.Quotas)
	switch {
	case items || policies || d&(Triple|X) != 0:
		d.write(h, &resp, items, policies)
	case resp.Denied && !waits:
		SetRetryAfter(h, resp.wait())
	}
}

// write writes what no quota has ready: the items, the policies, the scalars
// and Retry-After.
func (d Dialect) write(h http.Header, resp *Response, items, policies bool) {
	// The values are gathered in one buffer and become one string.
	var array [512]byte
	var out fields
	buf := array[:0]
	if items {
		buf = appendItems(buf, resp)
		out.end(keyRateLimit, buf)
	}
	if policies {
		buf = appendPolicies(buf, resp.Quotas)
		out.end(keyPolicy, buf)
	}
	if tight := resp.tightest(); tight != nil {
		n := tight.numbers(resp.Denied)
		if d&Triple != 0 {
			buf = out.scalars(buf, h, tripleKeys, n, resp.Denied)
		}
		if d&X != 0 {
			buf = out.scalars(buf, h, xKeys, n.since(resp.Now), resp.Denied)
		}
	}
	if resp.Denied {
		if seconds, ok := longestWait(h, resp.wait()); ok {
			buf = strconv.AppendInt(buf, seconds, 10)
			out.end(keyRetryAfter, buf)
		} else {
			delete(h, keyRetryAfter)
		}
	}
	out.set(h, buf)
}

// fields are the keys of the values in a buffer, and where each value ends.
type fields struct {
	n    int
	last int       // ends[n-1]
	keys [9]string // two of the draft, three each of Triple and X, Retry-After
	ends [9]int
}

// end ends the value of key, which is dropped if nothing was appended for it:
// an empty list is a field that is not there (RFC 9651 section 4.1).
func (f *fields) end(key string, buf []byte) {
	if len(buf) == f.last {
		return
	}
	f.last = len(buf)
	f.keys[f.n], f.ends[f.n] = key, f.last
	f.n++
}

// set sets the fields in h; to lists that are there it appends a line.
func (f *fields) set(h http.Header, buf []byte) {
	if f.n == 0 {
		return
	}
	text, lines, start := string(buf), make([]string, f.n), 0
	for i, key := range f.keys[:f.n] {
		lines[i] = text[start:f.ends[i]]
		start = f.ends[i]
		line := lines[i : i+1 : i+1] // cut, so that an append by others copies it
		if old := h[key]; len(old) > 0 && (key == keyRateLimit || key == keyPolicy) {
			line = append(old[:len(old):len(old)], line...)
		}
		h[key] = line
	}
}

// appendItems appends the value of RateLimit.
func appendItems(buf []byte, resp *Response) []byte {
	var array [8]int
	for n, i := range resp.appendOrder(array[:0]) {
		if n > 0 {
			buf = append(buf, ", "...)
		}
		buf = resp.States[i].appendItem(buf, resp.Denied)
	}
	return buf
}

// appendOrder appends the indices of the States to list, in order. They are
// few, and most often sorted: the insertion costs one look at each.
func (resp *Response) appendOrder(order []int) []int {
	for i := range resp.States {
		if !resp.States[i].listed(resp.Denied) {
			continue
		}
		order = append(order, i)
		if resp.Denied {
			continue
		}
		r := resp.States[i].remaining()
		for j := len(order) - 1; j > 0 && r < resp.States[order[j-1]].remaining(); j-- {
			order[j], order[j-1] = order[j-1], order[j]
		}
	}
	return order
}

// appendItem appends the item, with its partition key if it has one.
func (s *State) appendItem(buf []byte, denied bool) []byte {
	buf = s.Quota.appendItem(buf, s.remaining(), s.effective(denied))
	if len(s.PartitionKey) > 0 {
		buf = append(buf, ";pk=:"...)
		buf = base64.StdEncoding.AppendEncode(buf, s.PartitionKey)
		buf = append(buf, ':')
	}
	return buf
}

// appendPolicies appends the value of RateLimit-Policy.
func appendPolicies(buf []byte, quotas []*Quota) []byte {
	start := len(buf)
	for _, q := range quotas {
		if !q.made() {
			continue
		}
		if len(buf) > start {
			buf = append(buf, ", "...)
		}
		buf = append(buf, q.policy[0]...)
	}
	return buf
}
