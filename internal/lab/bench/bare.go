// The bare script: the least that an exact batch of token buckets costs in Redis.

package main

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
)

//go:embed bare.lua
var bareSource string

var bareScript = redis.NewScript(bareSource)

// A bare runs bare.lua under one limit. Its callers may be concurrent.
type bare struct {
	client      *redis.Client
	r, w, burst int64 // r units drain every w µs, in lowest terms
}

// A bareAnswer is the answer to one check.
type bareAnswer struct {
	allowed bool
	n, t    int64
}

// newBare returns a bare with the rate and burst of a token bucket.
func newBare(client *redis.Client, l algorithms.Limit) bare {
	r, w := l.Requests(), l.Window().Microseconds()
	common := r
	for rest := w; rest > 0; {
		common, rest = rest, common%rest
	}
	return bare{client, r / common, w / common, l.Burst()}
}

// ask takes a unit of each key. answers is a buffer for the result.
func (b bare) ask(ctx context.Context, keys []string, answers []bareAnswer) ([]bareAnswer, error) {
	numbers, err := bareScript.Run(ctx, b.client, keys, b.r, b.w, b.burst).Int64Slice()
	if err != nil {
		return nil, err
	}
	if len(numbers) != 3*len(keys) {
		return nil, fmt.Errorf("bare.lua: got %d numbers for %d keys", len(numbers), len(keys))
	}
	answers = answers[:0]
	for ; len(numbers) > 0; numbers = numbers[3:] {
		answers = append(answers, bareAnswer{numbers[0] == 1, numbers[1], numbers[2]})
	}
	return answers, nil
}

// use puts units of keys into use at this instant. No key may exist.
func (b bare) use(ctx context.Context, keys []string, units int64) error {
	if units == 0 {
		return nil
	}
	now := time.Now().UnixMicro()
	lives := time.Duration(units*b.w/b.r) * time.Microsecond
	pipeline := b.client.Pipeline()
	for _, key := range keys {
		pipeline.Set(ctx, key, bareState(now, units), lives)
	}
	_, err := pipeline.Exec(ctx)
	return err
}

// bareState returns the short form of a state: t in µs, and n of at most 999.
func bareState(t, n int64) string { return fmt.Sprintf("%d%03d", t, n) }
