package main

import (
	"context"
	"io"
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

// load sends requests to the URLs in turn, whether or not earlier ones have answers, until the run ends.
func load(ctx context.Context, begin time.Time, p plan, urls ...string) []answer {
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
		all.Go(func() { answers[i] = send(ctx, client, begin, urls[i%len(urls)]) })
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
