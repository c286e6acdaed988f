package headers

import (
	"bufio"
	"net"
	"net/http"
	"time"
)

// Gateway returns a handler for a proxy behind a limiter, such as a httputil.ReverseProxy, whose upstream sends rate
// limit fields of its own. The response then has one line of each field:
//
//   - If the upstream denies the request (429, or 503 with Retry-After), its fields pass through. Of the limiter's
//     fields only RateLimit-Policy stays, if the upstream sends none of the RateLimit fields.
//   - Otherwise the fields of the limit that is nearer stay, by the least r/q, and the limiter's if the upstream's cannot
//     be read. The RateLimit fields are decided on together, and so are the X-RateLimit fields.
//
// Put it between the limiter and the proxy: limited.Handler(Gateway(proxy)). A response to an upgrade (101) keeps all
// fields. Gateway panics if next is nil.
func Gateway(next http.Handler) http.Handler {
	if next == nil {
		panic("headers: the handler is nil")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		own := make(http.Header)
		for _, keys := range groups {
			move(own, h, keys)
		}
		if len(own) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		g := &gatewayWriter{ResponseWriter: w, own: own}
		next.ServeHTTP(g, r)
		g.merge(http.StatusOK) // if the handler has written nothing
	})
}

// groups are the fields on which Gateway decides together. The versions of the draft
// are one family, because clients read either, and their policies are in one
// field.
var groups = [][]string{
	{keyRateLimit, keyPolicy, separateKeys.limit, separateKeys.remaining, separateKeys.reset},
	{xRateLimitKeys.limit, xRateLimitKeys.remaining, xRateLimitKeys.reset},
}

// move moves the fields of keys from one header to another, and reports whether
// there were any.
func move(to, from http.Header, keys []string) (moved bool) {
	for _, key := range keys {
		if lines, ok := from[key]; ok {
			to[key], moved = lines, true
			delete(from, key)
		}
	}
	return moved
}

// A gatewayWriter holds the limiter's fields back until it knows the response of
// the upstream. A proxy may clear the header after a response of 1xx.
type gatewayWriter struct {
	http.ResponseWriter
	own http.Header // nil once it is merged
}

// Unwrap is for http.ResponseController.
func (g *gatewayWriter) Unwrap() http.ResponseWriter { return g.ResponseWriter }

func (g *gatewayWriter) WriteHeader(status int) {
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		g.merge(status)
	}
	g.ResponseWriter.WriteHeader(status)
}

func (g *gatewayWriter) Write(p []byte) (int, error) {
	g.merge(http.StatusOK)
	return g.ResponseWriter.Write(p)
}

func (g *gatewayWriter) Flush() { _ = g.FlushError() }

// FlushError begins the response, if it has not begun yet.
func (g *gatewayWriter) FlushError() error {
	g.merge(http.StatusOK)
	return http.NewResponseController(g.ResponseWriter).Flush()
}

// Hijack gives the limiter's fields back: the proxy writes the response with them.
func (g *gatewayWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	for _, keys := range groups {
		move(g.Header(), g.own, keys)
	}
	g.own = nil
	return http.NewResponseController(g.ResponseWriter).Hijack()
}

func (g *gatewayWriter) merge(status int) {
	if g.own == nil {
		return
	}
	h := g.Header()
	denies := status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable && h.Get(keyRetryAfter) != ""
	for _, keys := range groups {
		own, upstream := make(http.Header), make(http.Header)
		move(own, g.own, keys)
		sends := move(upstream, h, keys)
		switch {
		case sends && (denies || nearest(upstream).before(nearest(own))):
			move(h, upstream, keys)
		case denies:
			move(h, own, []string{keyPolicy})
		default:
			move(h, own, keys)
		}
	}
	g.own = nil
}

// nearest returns the limit that is nearest to its end.
func nearest(h http.Header) ServiceLimit {
	least := unstated()
	for _, l := range Read(http.StatusOK, h, time.Time{}).Limits {
		if l.before(least) {
			least = l
		}
	}
	return least
}

// before reports whether l is nearer to its end than m. A limit without a number of
// units left is the farthest. Without a quota, only what remains counts.
func (l ServiceLimit) before(m ServiceLimit) bool {
	switch {
	case l.Remaining < 0 || m.Remaining < 0:
		return l.Remaining >= 0 && m.Remaining < 0
	case l.Quota < 0 || m.Quota < 0:
		return l.Remaining < m.Remaining
	}
	return nearer(l.Remaining, l.Quota, m.Remaining, m.Quota)
}
