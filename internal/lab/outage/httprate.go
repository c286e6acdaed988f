package main

import (
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5/middleware"
	"github.com/go-chi/httprate"
	httprateredis "github.com/go-chi/httprate-redis"
)

// httpRate is the example of httprate-redis.
func httpRate(addr string, next http.Handler) (http.Handler, error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, err
	}
	return middleware.ClientIPFromRemoteAddr(httprate.LimitBy(
		perSecond,
		time.Second,
		func(r *http.Request) (string, error) {
			return httprate.CanonicalizeIP(middleware.GetClientIP(r.Context())), nil
		},
		httprateredis.WithRedisLimitCounter(&httprateredis.Config{
			Host: host, Port: uint16(port),
		}),
	)(next)), nil
}
