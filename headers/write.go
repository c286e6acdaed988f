package headers

import (
	"cmp"
	"net/http"
	"strconv"
	"unsafe"
)

// Keys of [http.Header] in canonical form. Get finds them, and writing needs no
// canonicalisation. HTTP/1.1 therefore shows "Ratelimit", HTTP/2 "ratelimit".
const (
	keyRateLimit    = "Ratelimit"
	keyPolicy       = "Ratelimit-Policy"
	keyRetryAfter   = "Retry-After"
	keyMilliseconds = "Retry-After-Ms"
)

// Write adds fields to h, which must not be nil. Call it before the response begins.
//
//   - RateLimit has one item per State, the least r first. A denial lists only the denied States, in their order.
//   - RateLimit-Policy has one item per Quota.
//   - The RateLimit-Limit and X-RateLimit families describe the State with the least r/q, or the denied State with the
//     longest wait.
//   - Only denials have Retry-After: the wait in whole seconds, rounded up, from 1 to 1209600 (14 days). A longer wait
//     in h stays; a value that is not a number is replaced. [Never] removes the field. The same holds for
//     Retry-After-Ms if d has it. If h has it, it is never shorter than the wait, whatever d is.
//
// Of stacked limiters, RateLimit and RateLimit-Policy get a line each, and an admitted response keeps the single numbers
// nearer to their limit. A denial removes the numbers of an outer limiter that has admitted the request; its policies
// stay.
//
// Write is safe for concurrent use with different h, and keeps nothing of resp. Do not edit lines of h in place, because
// Quotas share them.
func (d Dialect) Write(h http.Header, resp Response) {
	d = cmp.Or(d, defaultDialect)
	if resp.Denied && len(h[keyRetryAfter]) == 0 { // otherwise an outer limiter has denied the request, too
		deleteNumbers(h)
	}
	if resp.Denied && (d&Milliseconds != 0 || len(h[keyMilliseconds]) > 0) {
		setMilliseconds(h, resp.wait())
	}
	var shared, waits bool
	if d&Draft != 0 {
		shared, waits = shareItem(h, &resp)
	}
	items := d&Draft != 0 && !shared
	policies := d&withPolicies != 0 && !sharePolicy(h, resp.Quotas)
	var tight *State // of the scalars that are not set
	if d&withNumbers != 0 {
		tight = resp.tightest()
	}
	if tight != nil && !items && !policies && d.shareScalars(h, &resp, tight) { // otherwise all have one buffer
		tight = nil
	}
	if items || policies || tight != nil || resp.Denied && !waits {
		d.write(h, &resp, tight, items, policies)
	}
}

// write writes the values that no quota has ready: the items, the policies, the
// scalars of tight, and Retry-After.
func (d Dialect) write(h http.Header, resp *Response, tight *State, items, policies bool) {
	// One buffer gathers the values, so that they become one string: one
	// allocation.
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
	if tight != nil {
		for _, keys := range scalarFamilies {
			if d&keys.dialect != 0 {
				buf = out.scalars(buf, h, keys, tight.Quota, tight.numbers(resp, keys.unix), resp.Denied)
			}
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

// maxFields is the most fields of a response: the numbers of all families, the
// items, the policies and Retry-After.
const maxFields = 3*len(scalarFamilies) + 3

// fields are the keys of the values in a buffer, and the end of each value.
type fields struct {
	n    int
	last int // ends[n-1]
	keys [maxFields]string
	ends [maxFields]int
}

// end ends the value of key. It drops an empty value: an empty list is not sent
// (RFC 9651 section 4.1).
func (f *fields) end(key string, buf []byte) {
	if len(buf) == f.last {
		return
	}
	f.last = len(buf)
	f.keys[f.n], f.ends[f.n] = key, f.last
	f.n++
}

// A block holds the lines of most responses and their text in one allocation.
type block struct {
	lines [5]string
	text  [176]byte
}

// hold returns the text of a buffer, and room for n lines. The caller may reuse the
// buffer.
func hold(buf []byte, n int) (text string, lines []string) {
	if n > len(block{}.lines) || len(buf) > len(block{}.text) {
		return string(buf), make([]string, n)
	}
	b := new(block)
	return unsafe.String(&b.text[0], copy(b.text[:], buf)), b.lines[:n] // the text never changes again
}

// set sets the fields in h. It appends a line to a list that h has already.
func (f *fields) set(h http.Header, buf []byte) {
	if f.n == 0 {
		return
	}
	text, lines := hold(buf, f.n)
	start := 0
	for i, key := range f.keys[:f.n] {
		lines[i] = text[start:f.ends[i]]
		start = f.ends[i]
		line := lines[i : i+1 : i+1] // cut, so that a later append copies it
		if key == keyRateLimit || key == keyPolicy {
			if old := h[key]; len(old) > 0 {
				line = append(old[:len(old):len(old)], line...)
			}
		}
		h[key] = line
	}
}

func appendItems(buf []byte, resp *Response) []byte {
	var array [8]int
	for n, i := range resp.appendOrder(array[:0]) {
		if n > 0 {
			buf = append(buf, ", "...)
		}
		s := &resp.States[i]
		buf = s.Quota.appendItem(buf, s.remaining(), s.effective(resp.Denied))
	}
	return buf
}

// appendOrder appends the indices of the listed States, in order. States are few
// and most often sorted, so an insertion sort takes one comparison for each.
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

func appendPolicies(buf []byte, quotas []*Quota) []byte {
	start := len(buf)
	for _, q := range quotas {
		if !q.made() {
			continue
		}
		if len(buf) > start {
			buf = append(buf, ", "...)
		}
		buf = q.appendPolicy(buf)
	}
	return buf
}
