package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// An answer is what the client has received for a request.
type answer struct {
	at     time.Duration // when the request was sent, from the begin of the run
	took   time.Duration
	status int // 0: no answer
}

// An instance serves a contestant's handler.
type instance struct {
	url    string
	server *http.Server
}

func serve(c contestant, redis string) (*instance, error) {
	handler, err := c.handle(redis, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "served\n") }))
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &instance{"http://" + l.Addr().String(), &http.Server{Handler: handler, ErrorLog: silent, ReadHeaderTimeout: patience}}
	go func() { _ = s.server.Serve(l) }()
	return s, nil
}

// load sends requests to the instances in turn, whether or not earlier ones have answers, until the run ends.
func load(ctx context.Context, begin time.Time, p plan, instances []*instance) []answer {
	client := &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: offered * 4}}
	defer client.CloseIdleConnections()
	sends := p.sends()
	answers := make([]answer, len(sends))
	var all sync.WaitGroup
	for i, due := range sends {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(begin.Add(due))):
		}
		all.Go(func() { answers[i] = send(ctx, client, begin, instances[i%len(instances)].url) })
	}
	all.Wait()
	return answers
}

func send(ctx context.Context, client *http.Client, begin time.Time, url string) answer {
	sent := time.Now()
	a := answer{at: sent.Sub(begin)}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return a
	}
	response, err := client.Do(r)
	a.took = time.Since(sent)
	if err != nil {
		return a
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	a.took, a.status = time.Since(sent), response.StatusCode
	return a
}
