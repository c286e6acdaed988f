package shared

import (
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// A script that Redis cannot run opens no circuit. One line of the log says why limits are not shared.
func TestScriptThatCannotRunIsLoggedOnce(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"does not compile": "return return",
		"fails":            "return nil + 1",
		"other reply":      "return 1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &logRecords{}
			client := redistest.Script(redistest.Start(t).Client(), redistest.On("eval", redistest.Send("eval", body, 1, "k")))
			l := must(t, client, &Options{Logger: log.logger(), Deadline: time.Minute})
			for range 3 {
				if d := take(t, l, "usr=1", perDay, 1); d.Source != algorithms.Local {
					t.Errorf("got %+v, want a local decision", d)
				}
			}
			want := []string{"Redis cannot run the script: this instance limits alone"}
			if got := log.messages(); !slices.Equal(got, want) {
				t.Errorf("got log lines %q, want %q", got, want)
			}
			if err, _ := log.attr(want[0], "error").(error); Reason(err) != reasonInternal {
				t.Errorf("got error %v, want Redis's", err)
			}
		})
	}
}
