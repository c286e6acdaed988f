// What views keep, and what it does not.

package shared

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// The cache keeps no bytes of a key, because the caller may change them.
func TestViewsKeepsNoBytes(t *testing.T) {
	d := newDenied()
	limit := algorithms.FixedWindow(1, time.Hour)
	bytes := []byte("usr=1")
	key := unsafe.String(unsafe.SliceData(bytes), len(bytes))
	take(t, d, key, limit, 1)
	take(t, d, key, limit, 1)
	bytes[4] = '2'
	take(t, d, "usr=1", limit, 1)
	if d.hits() != 1 {
		t.Errorf("got %d hits, want one", d.hits())
	}
}

func TestLongKeysAreNotRemembered(t *testing.T) {
	d := newDenied()
	for _, n := range []int{maxKept, maxKept + 1} {
		for range 3 {
			take(t, d, strings.Repeat("k", n), algorithms.FixedWindow(1, time.Hour), 1)
		}
	}
	if d.hits() != 1 || d.keys() != 1 {
		t.Errorf("got %d hits and %d keys, want one of the shorter key", d.hits(), d.keys())
	}
}

func TestViewsIsBounded(t *testing.T) {
	t.Parallel()
	d := newDenied()
	limit := algorithms.FixedWindow(1, time.Hour)
	for i := range 20_000 {
		key := "ip=" + strconv.Itoa(i)
		take(t, d, key, limit, 1)
		take(t, d, key, limit, 1)
	}
	if keys := d.keys(); keys > 1_024 || keys < 512 {
		t.Errorf("got %d keys, want about 1 000", keys)
	}
}

// Concurrent requests may end at any instant.
func TestDenialsOfConcurrentRequestsAreNotRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDenied()
		for range 5 {
			d.exhaust(t, algorithms.Concurrent(1, time.Hour))
		}
		if d.hits() != 0 || d.keys() != 0 {
			t.Errorf("got %d hits and %d keys, want none", d.hits(), d.keys())
		}
	})
}

// A key that was admitted ahead takes at most 220 bytes, with its text of twelve bytes.
func TestBytesOfAView(t *testing.T) {
	inUse := func() int64 {
		runtime.GC()
		runtime.GC() // of what pools held
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	const keys = 100_000
	limit := algorithms.TokenBucket(100, time.Hour)
	now, before := time.Now().UnixMicro(), inUse()
	v := newViews(2*keys, 25, func() bool { return false })
	for i := range keys {
		c, err := newCall([]algorithms.Check{checkOf(fmt.Sprintf("usr=%08d", i), limit, 1)})
		if err != nil {
			t.Fatal(err)
		}
		it := &c.items[0]
		it.Now, it.Answer = now, step.Answer{Allowed: true, Charged: true, T: now, N: 1}
		it.decide(now, algorithms.Shared)
		sh, _ := v.locked(it)
		v.learn(sh, it, 0, 0)
		sh.mu.Unlock()
		c.free()
	}
	each := (inUse() - before) / keys
	if t.Logf("%d bytes per key, %d of them in a view", each, unsafe.Sizeof(view{})); each > 220 || each < 100 {
		t.Errorf("%d bytes per key, want at most 220", each)
	}
	runtime.KeepAlive(v)
}
