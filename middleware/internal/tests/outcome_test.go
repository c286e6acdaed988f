package tests

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

// says is a limiter that answers with these decisions, in turn.
func says(decisions ...algorithms.Decision) algorithms.Limiter {
	return limiterFunc(func(_ context.Context, checks []algorithms.Check) error {
		for i := range checks {
			checks[i].Decision = decisions[i]
		}
		return nil
	})
}

// TestOutcome: every outcome has its cause, and its name.
func TestOutcome(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	admitted := func(s algorithms.Source) algorithms.Decision { return algorithms.Decision{Allowed: true, Source: s} }
	denied := func(s algorithms.Source) algorithms.Decision { return algorithms.Decision{Source: s} }
	one, two := []ratelimit.Policy{byIP("p", hourly)}, []ratelimit.Policy{byIP("p", hourly), byIP("q", hourly)}
	keyed := []ratelimit.Policy{{Name: "p", Key: apiKey, Limit: hourly}}
	shadow, negative := byIP("p", hourly), byIP("p", hourly)
	shadow.Shadow = true
	negative.Cost = costOf(-1)
	for _, tt := range []struct {
		name     string
		limiter  algorithms.Limiter
		policies []ratelimit.Policy
		r        *http.Request
		want     []string
		source   algorithms.Source
	}{
		{"alone", newStill(t), one, from("192.0.2.1"), []string{"allowed"}, algorithms.Local},
		{"alone, denied", newStill(t), []ratelimit.Policy{byIP("p", algorithms.Nobody())}, from("192.0.2.1"), []string{"denied"}, algorithms.Local},
		{"shared", says(admitted(algorithms.Shared)), one, from("192.0.2.1"), []string{"allowed"}, algorithms.Shared},
		{"shared, denied", says(denied(algorithms.Shared)), one, from("192.0.2.1"), []string{"denied"}, algorithms.Shared},
		{
			"remembered", says(admitted(algorithms.Undecided), denied(algorithms.Shared)), two, from("192.0.2.1"),
			[]string{"unasked", "denied"}, algorithms.Shared,
		},
		{"shadow", says(denied(algorithms.Shared)), []ratelimit.Policy{shadow}, from("192.0.2.1"), []string{"shadow_denied"}, algorithms.Shared},
		{"degraded", says(admitted(algorithms.Local)), one, from("192.0.2.1"), []string{"degraded_allowed"}, algorithms.Local},
		{
			"degraded, denied", says(admitted(algorithms.Undecided), denied(algorithms.Local)), two, from("192.0.2.1"),
			[]string{"failed_open", "degraded_denied"}, algorithms.Local,
		},
		{"open", broken(errDown), one, from("192.0.2.1"), []string{"failed_open"}, algorithms.Undecided},
		{"closed", broken(errDown), modes(algorithms.FailClosed), from("192.0.2.1"), []string{"failed_closed"}, algorithms.Undecided},
		{"unknown key", newStill(t), keyed, withKeys("guess"), []string{"key_error"}, algorithms.Undecided},
		{"cancelled", newStill(t), one, from("192.0.2.1").WithContext(cancelled), []string{"cancelled"}, algorithms.Undecided},
		{"mistake", newStill(t), []ratelimit.Policy{negative}, from("192.0.2.1"), []string{"invalid"}, algorithms.Undecided},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, _ := newMiddleware(t, tt.limiter, &ratelimit.Options{Logger: quiet}, tt.policies...).Check(tt.r) // its error is tested elsewhere
			var got []string
			for i := range v.Policies {
				got = append(got, v.Policies[i].Outcome.String())
			}
			if !slices.Equal(got, tt.want) || v.Source() != tt.source {
				t.Errorf("got %q by %v, want %q by %v", got, v.Source(), tt.want, tt.source)
			}
		})
	}
	if got := (ratelimit.OutcomeInvalid + 1).String(); got != "unknown" {
		t.Errorf("got %q, want unknown", got)
	}
}
