package main

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/lab/nottest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// A recording is a story of the example's page: two instances, and a Redis that dies. Times are in milliseconds.
type recording struct {
	Words     string     `json:"words"`  // the limit
	Burst     int64      `json:"burst"`  // of it
	Share     int64      `json:"share"`  // the burst of an instance alone
	Down      int64      `json:"down"`   // Redis is killed
	Up        int64      `json:"up"`     // it is started again
	Shared    int64      `json:"shared"` // both instances count in Redis again
	Instances [][][5]int `json:"instances"`
}

const (
	storyEnd  = 20 * time.Second
	storyDown = 6 * time.Second
	storyUp   = 13 * time.Second
	storyStep = 200 * time.Millisecond // between two requests of an instance
)

var storyLimit = algorithms.TokenBucket(60, 10*time.Second).WithBurst(12)

// record writes a recording. Each of its requests is [time, admitted, alone, units left, RetryAfter].
func record(ctx context.Context, file string) error {
	r := recording{
		Words: "6 requests per second with a burst of 12", Burst: storyLimit.Burst(), Share: storyLimit.Burst() / 2,
		Down: storyDown.Milliseconds(), Up: storyUp.Milliseconds(), Shared: storyDown.Milliseconds(), Instances: make([][][5]int, 2),
	}
	errs := make([]error, len(r.Instances))
	err := nottest.Run(func(owner *nottest.Owner) {
		server := redistest.Start(owner)
		var all sync.WaitGroup
		begin := time.Now().Add(3 * time.Second) // then Redis knows both instances, and both know it
		for i := range r.Instances {
			client := redis.NewClient(&redis.Options{Addr: server.Addr()})
			owner.Cleanup(func() { _ = client.Close() })
			limiter := nottest.Must(shared.New(client, nil))
			owner.Cleanup(func() { _ = limiter.Close() })
			all.Go(func() { r.Instances[i], errs[i] = ask(ctx, limiter, begin, time.Duration(i)*storyStep/2) })
		}
		time.Sleep(time.Until(begin.Add(storyDown)))
		server.Kill()
		time.Sleep(time.Until(begin.Add(storyUp)))
		server.Restart()
		all.Wait()
	})
	for _, request := range slices.Concat(r.Instances...) {
		if request[2] == 1 {
			r.Shared = max(r.Shared, int64(request[0])+1)
		}
	}
	text, marshalErr := json.Marshal(r)
	if err := errors.Join(append(errs, err, marshalErr)...); err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// ask sends the requests of an instance, the first of them after a time.
func ask(ctx context.Context, l *shared.Limiter, begin time.Time, first time.Duration) (requests [][5]int, err error) {
	if _, err := algorithms.Allow(ctx, l, "usr=0", storyLimit); err != nil { // so that Redis knows the instance
		return nil, err
	}
	for at := first; at < storyEnd; at += storyStep {
		time.Sleep(time.Until(begin.Add(at)))
		sent := time.Since(begin)
		d, err := algorithms.Allow(ctx, l, "usr=1", storyLimit)
		if err != nil {
			return nil, err
		}
		request := [5]int{int(sent.Milliseconds()), 0, 0, int(d.Remaining), int(math.Ceil(d.RetryAfter.Seconds() * 1e3))}
		if d.Allowed {
			request[1] = 1
		}
		if d.Source != algorithms.Shared {
			request[2] = 1
		}
		requests = append(requests, request)
	}
	return requests, nil
}
