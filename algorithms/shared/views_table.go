// The table of views: bounded shards, which keep every view that counts.

package shared

import (
	"math"
	"sync"
	"time"
	"unique"

	"github.com/penstock-go/penstock/algorithms/internal/step"
)

// A viewShard is a part of the table, with a lock of its own.
type viewShard struct {
	most    int              // keys
	mu      sync.Mutex       // guards the fields below, and the views
	keys    map[uint64]*view // by the hash of the key
	settled time.Duration    // when the latest settlement was answered
	lossy   time.Duration    // until then, an unknown key may be one whose view was dropped although it counts
}

// find returns the view of an item's key, or nil. Another key may have the same hash.
// It requires mu.
func (sh *viewShard) find(it *item) *view {
	if w := sh.keys[it.hash]; w != nil && w.key == it.Key {
		return w
	}
	return nil
}

// forget lets the view of an item's key tell nothing until the next answer. It requires mu.
func (sh *viewShard) forget(it *item, now time.Duration) {
	if w := sh.find(it); w != nil {
		w.unsure = true
	}
	sh.settled = now
}

// add adds a view; nil if the key is too long, or if there is no room. It drops other
// views to make room, but none with units that Redis has not acknowledged. It requires mu.
func (sh *viewShard) add(it *item, now time.Duration) *view {
	drop := func(old *view) bool {
		ends := old.ends(now)
		if old.flies || old.unacked > 0 || len(sh.keys) < sh.most && ends > now {
			return false
		}
		sh.lossy = max(sh.lossy, ends)
		return true
	}
	same := sh.keys[it.hash] // of another key
	if len(it.Key.Text) > maxKept || same != nil && !drop(same) {
		return nil
	}
	delete(sh.keys, it.hash)
	if dropSome(sh.keys, drop); len(sh.keys) >= sh.most {
		return nil
	}
	w := &view{key: it.Key.Clone(), limit: unique.Make(it.Limit)}
	sh.keys[it.hash] = w
	return w
}

// ends returns when a view tells nothing any more.
func (w *view) ends(now time.Duration) time.Duration {
	l := w.limit.Value()
	if !l.Row.Counted {
		return w.free
	}
	t := w.now + (now - w.answered).Microseconds()
	left := step.Until(l.FullAt(l.At(w.state(), t)), t)
	return max(w.free, now+min(left, math.MaxInt64-now))
}
