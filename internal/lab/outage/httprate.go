package main

import (
	"net"
	"net/http"
	"strconv"
	"time"

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
	return httprate.Limit(
		perSecond,
		time.Second,
		httprate.WithKeyByIP(),
		httprateredis.WithRedisLimitCounter(&httprateredis.Config{
			Host: host, Port: uint16(port),
		}),
	)(next), nil
}
