package redisurl

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestURLs(t *testing.T) {
	t.Parallel()
	tests := []struct{ url, addrs, client string }{
		{"redis://127.0.0.1", "127.0.0.1:6379", "*redis.Client db 0 user \"\" password \"\""},
		{"redis://alice:p%40ss@[::1]:1/3?pool_size=7", "[::1]:1", "*redis.Client db 3 user \"alice\" password \"p@ss\""},
		{"unix:///run/redis.sock?db=1", "/run/redis.sock", "*redis.Client db 1 user \"\" password \"\""},
		{"redis://alice:p%40ss@a:1?addr=b:2&addr=c:3", "a:1,b:2,c:3", "*redis.ClusterClient user \"alice\" password \"p@ss\""},
		{"rediss://a:1?addr=a:1", "a:1,a:1", "*redis.ClusterClient user \"\" password \"\""},
		{"redis://a:1?master_name=mymaster&addr=b:2&addr=%5B::1%5D:3", "a:1,b:2,[::1]:3", "*redis.Client db 0 user \"\" password \"\""},
		{"redis://:s@a:1/2?master_name=mymaster&username=alice&password=p%26ss", "a:1", "*redis.Client db 2 user \"alice\" password \"p&ss\""},
	}
	for _, tt := range tests {
		r, err := Parse(tt.url)
		if err != nil {
			t.Errorf("%s: %v", tt.url, err)
			continue
		}
		rdb := r.Open()
		defer rdb.Close()
		var client string
		switch rdb := rdb.(type) {
		case *redis.Client:
			o := rdb.Options()
			client = fmt.Sprintf("%T db %d user %q password %q", rdb, o.DB, o.Username, o.Password)
		case *redis.ClusterClient:
			o := rdb.Options()
			client = fmt.Sprintf("%T user %q password %q", rdb, o.Username, o.Password)
		}
		if r.Addrs != tt.addrs || client != tt.client {
			t.Errorf("%s: got %s of %s, want %s of %s", tt.url, client, r.Addrs, tt.client, tt.addrs)
		}
	}
}

// TestNoURL: without a URL there is no client.
func TestNoURL(t *testing.T) {
	t.Parallel()
	r, err := Parse("")
	if rdb := r.Open(); err != nil || rdb != nil {
		t.Errorf("got %v and %v, want no client", rdb, err)
	}
}
