// A client that the program has closed too early.

package shared

import (
	"fmt"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/shared/internal/trouble"
	"github.com/penstock-go/penstock/internal/redistest"
)

// A closed client is a misconfiguration: the circuit opens, and Ready and the log say
// what to do.
func TestClosedClient(t *testing.T) {
	t.Parallel()
	const advice = "after the limiter"
	log := &logRecords{}
	client := clientOf(t, redistest.Start(t).Addr(), nil)
	l := must(t, client, &Options{Logger: log.logger()})
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	wantMisconfigured(t, l, "closed", "client is closed", advice)
	redistest.Until(t, "the circuit opens", func() bool {
		if d := take(t, l, "usr=1", perDay, 1); d.Source != algorithms.Local {
			t.Errorf("got %+v, want a local decision", d)
		}
		return l.Stats().Fallback.Open > 0
	})
	if err := l.Ready(t.Context()); Reason(err) != trouble.Configuration || !strings.Contains(err.Error(), advice) {
		t.Errorf("got %v from Ready, want the advice", err)
	}
	_ = l.Close() // writes all lines
	if text := fmt.Sprint(log.attr(logMisconfigured, "error")); !strings.Contains(text, advice) || log.count(logUnavailable) != 1 {
		t.Errorf("got the lines %q with error=%q, want the circuit's opening and the advice", log.messages(), text)
	}
}
