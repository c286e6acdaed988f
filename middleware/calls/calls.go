// Package calls, which a minor version may change, applies the policies of a Middleware where there is no http.Request: to a gRPC call, a message of a
// WebSocket, a job of a queue, or a tool call of MCP. Tiers, overrides, bans, metrics and findings are those of HTTP, and
// a client has the same counts there.
//
//	v, err := calls.Allow(ctx, limited, calls.Call{Name: "send", Identity: user})
package calls

import (
	"context"
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"

	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
)

// A Call is a request without HTTP. Each field may be zero.
type Call struct {
	// Name is what keyfunc.Route counts, such as a method of gRPC or a tool. It must come from the program: a client that
	// chooses it has a new limit for each name.
	Name string

	// Identity is the verified client. Keys of keyfunc.User and keyfunc.APIKey count it, with its tier. If its ID is empty,
	// they look into the context and into Header.
	Identity keyfunc.Identity

	// Peer is the address at the other end of the connection, such as "192.0.2.1:1234" or peer.Addr.String() of gRPC.
	// Without one, policies by address count all such calls together, under ip=unknown.
	Peer string

	// Header has the metadata, with names in any case: the true address behind a proxy, API keys, and what Policy.Cost and
	// other functions read. That of gRPC is http.Header(md).
	Header http.Header
}

// Allow decides and charges a call by all policies of a Middleware, as its Check does: a denied call is charged to none.
// The context's values are those of the request that the policies' functions receive; so keys of keyfunc.User find the
// user there. Hold an admitted call for v.Delay. If a Concurrent limit is in force, err wraps algorithms.ErrInvalid, and
// ChargeIf does not run: the call counts.
//
// Answer a denied call in the words of its protocol, with v.Status and v.RetryAfter. Its clients must not see err.
func Allow(ctx context.Context, limited *ratelimit.Middleware, c Call) (v ratelimit.Verdict, err error) {
	ctx = context.WithValue(ctx, chi.RouteCtxKey, (*chi.Context)(nil)) // of the request that began the connection
	r := (&http.Request{
		Method: http.MethodPost, URL: &url.URL{Path: "/"}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: make(http.Header, len(c.Header)), Body: http.NoBody, RemoteAddr: c.Peer, Pattern: c.Name,
	}).WithContext(ctx)
	for name, values := range c.Header {
		name = http.CanonicalHeaderKey(name)
		r.Header[name] = append(r.Header[name], values...)
	}
	return limited.Inside().CheckAs(r, c.Identity.ID, c.Identity.Tier)
}
