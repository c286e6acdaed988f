package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
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
	owner := nottest.NewOwner()
	defer owner.Close()
	var server *redistest.Server
	if err := owner.Do(func() { server = redistest.Start(owner) }); err != nil {
		return err
	}
	r := recording{
		Words: "6 requests per second with a burst of 12", Burst: storyLimit.Burst(), Share: storyLimit.Burst() / 2,
		Down: storyDown.Milliseconds(), Up: storyUp.Milliseconds(), Instances: make([][][5]int, 2),
	}
	limiters := make([]*shared.Limiter, len(r.Instances))
	for i := range limiters {
		client := redis.NewClient(&redis.Options{Addr: server.Addr()})
		defer client.Close()
		l, err := shared.New(client, nil)
		if err != nil {
			return err
		}
		defer l.Close()
		limiters[i] = l
		if _, err := algorithms.Allow(ctx, l, "usr=0", storyLimit); err != nil { // so that Redis knows both instances
			return err
		}
	}
	time.Sleep(3 * time.Second) // and both know it
	begin := time.Now()
	var all sync.WaitGroup
	errs := make([]error, len(limiters))
	for i, l := range limiters {
		all.Go(func() { r.Instances[i], errs[i] = ask(ctx, l, begin.Add(time.Duration(i)*storyStep/2), begin) })
	}
	time.Sleep(time.Until(begin.Add(storyDown)))
	errs = append(errs, owner.Do(server.Kill))
	time.Sleep(time.Until(begin.Add(storyUp)))
	errs = append(errs, owner.Do(server.Restart))
	all.Wait()
	r.Shared = r.Down
	for _, requests := range r.Instances {
		for _, request := range requests {
			if request[2] == 1 {
				r.Shared = max(r.Shared, int64(request[0])+1)
			}
		}
	}
	text, err := json.Marshal(r)
	if err := errors.Join(append(errs, err)...); err != nil {
		return err
	}
	fmt.Printf("counted together again %d ms after the restart\n", r.Shared-r.Up)
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

func ask(ctx context.Context, l *shared.Limiter, first, begin time.Time) (requests [][5]int, err error) {
	for at := first; at.Before(begin.Add(storyEnd)); at = at.Add(storyStep) {
		time.Sleep(time.Until(at))
		sent := time.Since(begin)
		d, err := algorithms.Allow(ctx, l, "usr=1", storyLimit)
		if err != nil {
			return nil, err
		}
		alone, allowed := 0, 0
		if d.Source != algorithms.Shared {
			alone = 1
		}
		if d.Allowed {
			allowed = 1
		}
		requests = append(requests, [5]int{int(sent.Milliseconds()), allowed, alone, int(d.Remaining), int(math.Ceil(d.RetryAfter.Seconds() * 1e3))})
	}
	return requests, nil
}
