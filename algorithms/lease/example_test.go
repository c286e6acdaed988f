package lease_test

import (
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/algorithms/lease"
	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/middleware"
)

// One limit for all clients makes one hot key. Leases spare Redis most of its
// takes.
func ExampleNew() {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	defer rdb.Close()
	limiter := ratelimit.Must(shared.New(rdb, nil))
	defer limiter.Close()
	leases := ratelimit.Must(lease.New(limiter, &lease.Options{Policies: []string{"global"}, Share: 5}))
	defer leases.Close() // gives back the units on lease, through limiter

	fmt.Printf("%+v\n", leases.Stats().Lease)
	// Output: {Keys:0 Units:0 Blocks:0 Leased:0 Spent:0 Returned:0 Lost:0}
}

// New names every misconfiguration at once.
func ExampleNew_misconfigured() {
	_, err := lease.New(nil, &lease.Options{Hold: time.Minute, Share: 60})
	fmt.Println(err)
	// Output:
	// lease: the limiter is nil; want the limiter that charges the units, e.g. of shared.New
	// lease: Share is 60; want per cent from 1 to 50, or 0 for the default
	// lease: Hold is 1m0s; want 10ms to 1s, or 0 for the default
}
