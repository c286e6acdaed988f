// Calls are pooled: no item shows fields of another call.

package shared

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
)

func TestPooledItemsKeepNoReceipt(t *testing.T) {
	reset := []algorithms.Check{{Policy: "p", Key: "usr=1", Limit: algorithms.FixedWindow(10, time.Hour), Op: algorithms.Reset}}
	for range 100 { // the pool mostly returns the call that was freed last
		backfill := callOf(1)
		it := &backfill.items[0]
		if err := reset[0].Item(&it.Item.Item); err != nil {
			t.Fatal(err)
		}
		it.Op, it.Receipt.T = step.Return, 12_345
		if err := backfill.add(it); err != nil {
			t.Fatal(err)
		}
		backfill.free()
		c, err := newCall(reset)
		if err != nil {
			t.Fatal(err)
		}
		c.items[0].admit()
		if got := c.items[0].decision.Receipt; got != (algorithms.Receipt{}) {
			t.Fatalf("got the receipt %+v of another call", got)
		}
		c.free()
	}
}
