package middleware_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/algorithms"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// TestLogEvents: each change of state is a line, and what happens all the time is none.
func TestLogEvents(t *testing.T) {
	log := new(logRecords)
	observe := ratelimit.LogEvents(log.logger())
	wrong := algorithms.Event{Kind: algorithms.EventError, Class: algorithms.ErrorConfiguration, Err: errors.New("NOPERM")}
	returned := algorithms.Event{Kind: algorithms.EventReturnFailed, Policy: "p", Err: errDown}
	for _, tt := range []struct {
		event algorithms.Event
		want  string // empty: nothing
	}{
		{algorithms.Event{Kind: algorithms.EventScriptLoaded}, ""},
		{algorithms.Event{Kind: algorithms.EventCapacity, Policy: "p"}, ""},
		{algorithms.Event{Kind: algorithms.EventError, Class: algorithms.ErrorTimeout, Err: errDown}, ""},
		{wrong, `level=ERROR msg="Redis is not configured for the limiter" error=NOPERM`},
		{wrong, ""},
		{
			algorithms.Event{Kind: algorithms.EventOpened, Class: algorithms.ErrorConfiguration, Err: errors.New("NOPERM")},
			`level=ERROR msg="Redis is not available: this instance limits by itself until it is" class=configuration error=NOPERM`,
		},
		{algorithms.Event{Kind: algorithms.EventClosed}, `level=INFO msg="Redis is available again"`},
		{wrong, `level=ERROR msg="Redis is not configured for the limiter"`},
		{returned, "level=WARN msg=\"ratelimit: units could not be given back"},
		{returned, ""},
		{
			algorithms.Event{Kind: algorithms.EventFinding, Finding: algorithms.Finding{Code: "PS201", Sentence: "It is so.", Remedy: "Change it."}},
			`level=WARN msg="ratelimit: It is so." code=PS201 remedy="Change it."`,
		},
	} {
		observe(tt.event)
		lines := log.lines()
		if tt.want == "" && len(lines) > 0 || tt.want != "" && (len(lines) != 1 || !strings.Contains(lines[0], tt.want)) {
			t.Errorf("%v: got %q, want %q", tt.event.Kind, lines, tt.want)
		}
	}
	ratelimit.LogEvents(nil)(algorithms.Event{Kind: algorithms.EventScriptLoaded})
}
