package algorithms_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms"
)

const openFor = time.Second

// recoveryBound is what Redis may be left alone after it is well again: until
// the circuit is tried, and what that may take.
const recoveryBound = openFor + 2*time.Second

func TestOutageEnds(t *testing.T) {
	t.Parallel()
	for _, ill := range illnesses {
		t.Run(ill.name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t, ill, nil)
			c := call(t, newShared(t, p.client, &algorithms.Options{Fallback: algorithms.FallbackOptions{OpenFor: openFor}}), 4, 5*time.Millisecond, nil)
			c.awaitShared(5 * time.Second)
			ill.begin(p)
			c.awaitOpen()
			time.Sleep(openFor / 4)
			ill.end(p)
			c.awaitShared(recoveryBound)
			c.dismiss()
		})
	}
}

// A pool in which as many dials failed as it has places dials no more by
// itself, but once a second, and until then repeats the last error.
func TestOutageEndsForASaturatedPool(t *testing.T) {
	t.Parallel()
	const places = 4
	for _, ill := range illnesses[:3] { // those in which dials fail
		t.Run(ill.name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t, ill, func(o *redis.Options) {
				o.PoolSize, o.DialTimeout = places, 100*time.Millisecond
			})
			c := call(t, newShared(t, p.client, &algorithms.Options{Fallback: algorithms.FallbackOptions{OpenFor: openFor}}), 4, 5*time.Millisecond, nil)
			c.awaitShared(5 * time.Second)
			ill.begin(p)
			// Five dials are one failure of the pool.
			eventually(t, 20*time.Second, "saturated", func() bool { return p.wire.failed.Load() > 5*places })
			c.awaitOpen()
			ill.end(p)
			c.awaitShared(recoveryBound)
			c.dismiss()
		})
	}
}
