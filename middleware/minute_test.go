package middleware

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestMinute: what a minute has is what was counted since the beginning of a tick 60 to 65 s ago, however the calls lie.
func TestMinute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type count struct {
			at   time.Duration
			kind int
		}
		var all []count
		now := time.Duration(rapid.IntRange(0, 1000).Draw(t, "start")) * time.Second
		m, made := newMinute(3, now), now
		for range rapid.IntRange(0, 50).Draw(t, "steps") {
			now += time.Duration(rapid.SampledFrom([]int{0, 1, 3, 5, 20, 59, 61, 300}).Draw(t, "pause")) * time.Second
			if rapid.Bool().Draw(t, "look") {
				got, long := m.last(now)
				if now > time.Minute && (long < time.Minute || long >= time.Minute+tickEvery) || long > now {
					t.Fatalf("at %v, made at %v: the last minute is %v long", now, made, long)
				}
				want := make([]uint32, 3)
				for _, c := range all {
					if c.at >= now-long {
						want[c.kind]++
					}
				}
				if !slices.Equal(got, want) {
					t.Fatalf("at %v: got %v, want %v", now, got, want)
				}
			}
			c := count{now, rapid.IntRange(0, 2).Draw(t, "kind")}
			m.add(c.kind, c.at)
			all = append(all, c)
		}
	})
}

// TestMinuteBackwards: whose clock was read before others turned does not turn back.
func TestMinuteBackwards(t *testing.T) {
	m := newMinute(1, 0)
	m.add(0, 70*time.Second)
	m.last(66 * time.Second)
	m.add(0, 9*time.Second)
	m.add(0, 70*time.Second)
	if got, _ := m.last(130 * time.Second); got[0] != 3 {
		t.Errorf("got %d of the last minute, want 3", got[0])
	}
}

// TestMinuteTogether: no count is lost while many goroutines count and turn.
func TestMinuteTogether(t *testing.T) {
	const goroutines, each = 8, 10_000
	m := newMinute(1, 0)
	var counting sync.WaitGroup
	for range goroutines {
		counting.Go(func() {
			for i := range each {
				m.add(0, time.Duration(i)*5*time.Millisecond)
			}
		})
	}
	counting.Wait()
	if got, _ := m.last(each * 5 * time.Millisecond); got[0] != goroutines*each {
		t.Errorf("got %d, want %d", got[0], goroutines*each)
	}
}

// TestBuckets: the middle of a duration's bucket is at most a sixteenth away from it.
func TestBuckets(t *testing.T) {
	check := func(d time.Duration) {
		bucket := bucketOf(d)
		if bucket < 0 || bucket >= durationBuckets {
			t.Fatalf("%v is in bucket %d of %d", d, bucket, durationBuckets)
		}
		if off := (middleOf(bucket) - d).Abs(); off > d/16 {
			t.Fatalf("the middle of the bucket of %v is %v", d, middleOf(bucket))
		}
	}
	for d := range time.Duration(100_000) {
		check(d)
	}
	for bits := range longestBits {
		check(1 << bits)
		check(1<<bits + time.Duration(rand.Int64N(1<<bits)))
	}
	for _, d := range []time.Duration{1 << longestBits, time.Hour, 1<<63 - 1} {
		if got := bucketOf(d); got != durationBuckets-1 {
			t.Errorf("%v is in bucket %d, want the last", d, got)
		}
	}
	if got := bucketOf(-1); got != 0 {
		t.Errorf("a negative duration is in bucket %d, want 0", got)
	}
}

func TestQuantile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		durations := rapid.SliceOfN(rapid.Int64Range(0, 1<<34), 1, 500).Draw(t, "durations")
		counts := make([]uint32, durationBuckets)
		for _, d := range durations {
			counts[bucketOf(time.Duration(d))]++
		}
		slices.Sort(durations)
		for _, percent := range []int{1, 50, 99, 100} {
			exact := time.Duration(durations[(len(durations)*percent+99)/100-1])
			if got := quantile(counts, uint64(percent)); (got - exact).Abs() > exact/16 {
				t.Errorf("got p%d %v, want %v within a sixteenth", percent, got, exact)
			}
		}
	})
	if got := quantile(make([]uint32, durationBuckets), 99); got != 0 {
		t.Errorf("of nothing: got %v, want 0", got)
	}
}

func TestQuality(t *testing.T) {
	for _, tt := range []struct {
		accept     string
		html, json int
	}{
		{"*/*", 1000, 1000},
		{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", 1000, 800}, // a browser
		{"application/json", 0, 1000},
		{"application/json;q=0", 0, 0},
		{"*/*, text/html;q=0", 0, 1000},
		{"text/html;q=0, */*", 0, 1000},
		{"text/*;q=0.25, text/html;q=0.5", 500, 0},
		{"text/*, */*;q=0.001", 1000, 1},
		{"TEXT/HTML ; Q=0.7", 700, 0},
		{"application/json; charset=UTF-8", 0, 1000},
		{"text/html;level=1, */*;q=0.5", 500, 500},
		{`text/html;title="a,b";q=0.9, application/json;q=0.1`, 0, 100},
		{`text/plain;a="\",text/html"`, 0, 0},
		{`text/plain;a="\"", text/html`, 1000, 0},
		{"text/html;q=2, application/json;q=1.5", 0, 0},
		{"text/html;q=0.1234", 0, 0},
		{"text/html;q=1.000, application/json;q=0.", 1000, 0},
		{"text/html;q=high, image/png", 0, 0},
		{",,text/html,,", 1000, 0},
		{"", 0, 0},
	} {
		if html, json := quality([]string{tt.accept}, typeHTML), quality([]string{tt.accept}, typeJSON); html != tt.html || json != tt.json {
			t.Errorf("%q: got %d for HTML and %d for JSON, want %d and %d", tt.accept, html, json, tt.html, tt.json)
		}
	}
	if got := quality([]string{"text/plain", "text/html;q=0.5"}, typeHTML); got != 500 {
		t.Errorf("in a second field: got %d, want 500", got)
	}
	if got := quality(nil, typeHTML); got != 1000 {
		t.Errorf("without a field: got %d, want 1000", got)
	}
}

func FuzzQuality(f *testing.F) {
	f.Add("text/html;q=0.5, */*")
	f.Add(`a/b;c="\",d"`)
	f.Fuzz(func(t *testing.T, accept string) {
		if q := quality([]string{accept}, typeHTML); q < 0 || q > 1000 {
			t.Errorf("%q: got a weight of %d", accept, q)
		}
	})
}
