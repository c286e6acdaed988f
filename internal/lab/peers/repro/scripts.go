// Scripts of articles. Each function gives them the times of callers' clocks.

package repro

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/internal/lab/nottest"
	"github.com/penstock-go/penstock/internal/lab/peers/scripts"
)

const hour = int64(time.Hour / time.Millisecond)

// take asks a script for one request of a client, at a time in milliseconds. It returns 1 if the request is admitted.
func take(rdb *redis.Client, script string, limit int, window, now int64) int {
	return nottest.Must(redis.NewScript(scripts.Text(script)).Run(context.Background(), rdb, []string{"client"}, limit, window, now, now).Int())
}

// A fixed window by INCR and EXPIRE: the expiry is an instant.
func incrClock(rdb *redis.Client) (string, bool) {
	nottest.Check(rdb.Set(context.Background(), "client", 10, hourAhead).Err())
	time.Sleep(3 * time.Second)
	admitted := take(rdb, "incr", 10, 1000, time.Now().UnixMilli())
	return fmt.Sprintf("three seconds after the clock was set right, at 10 per second: %d admitted", admitted), admitted == 0
}

// A log with the time as member: requests of one millisecond are one entry.
func logTime(rdb *redis.Client) (string, bool) {
	now, admitted := time.Now().UnixMilli(), 0
	for i := range int64(640) {
		admitted += take(rdb, "log-time", 100, hour, now+i%50)
	}
	return fmt.Sprintf("%d of 640 requests in 50 ms were admitted at a limit of 100", admitted), admitted > 100
}

// A log in a sorted set: entries of a clock that was an hour ahead are never older than the window.
func logUniqueClock(rdb *redis.Client) (string, bool) {
	now, admitted := time.Now().UnixMilli(), 0
	for i := range int64(10) {
		take(rdb, "log-unique", 10, 4000, now+hour+i)
	}
	for i := range int64(20) { // one every 200 ms, so the key does not expire
		admitted += take(rdb, "log-unique", 10, 4000, now+i*200)
	}
	return fmt.Sprintf("%d requests were admitted in the 4 s after the clock was set right, at 10 per 4 s", admitted), admitted == 0
}

// A token bucket by the callers' clocks: one of four is 2 s late.
func bucketSkew(rdb *redis.Client) (string, bool) {
	now, admitted := time.Now().UnixMilli(), 0
	for i := range int64(400) {
		admitted += take(rdb, "bucket", 100, 10_000, now-i%4/3*2000)
	}
	return fmt.Sprintf("%d of 400 requests of one instant were admitted at a limit of 100, with a clock of four 2 s late", admitted), admitted > 110
}

// A token bucket in a hash: PTTL returns -1 if a key has no expiry.
func bucketForeverExpiry(rdb *redis.Client) (string, bool) {
	admitted := take(rdb, "bucket-forever", 10, 1000, time.Now().UnixMilli())
	expiry := rdb.PTTL(context.Background(), "client").Val()
	return fmt.Sprintf("%d admitted; PTTL %d", admitted, expiry.Nanoseconds()), expiry == -1
}

// A token bucket in a hash: after a clock that was an hour ahead nothing is refilled for an hour.
func bucketForeverClock(rdb *redis.Client) (string, bool) {
	now, admitted := time.Now().UnixMilli(), 0
	for i := range int64(10) {
		take(rdb, "bucket-forever", 10, 1000, now+hour+i)
	}
	for i := range int64(1800) { // one every second
		admitted += take(rdb, "bucket-forever", 10, 1000, now+i*1000)
	}
	return fmt.Sprintf("%d requests were admitted in half an hour, at 10 per second", admitted), admitted == 0
}
