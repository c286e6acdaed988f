package ratelimit

import (
	"net/http"
	"testing"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware/internal/problem"
)

// TestProblemHasTheStatus: the kind of a refusal has the status of the response, whatever else denies the request.
func TestProblemHasTheStatus(t *testing.T) {
	banned := PolicyVerdict{Name: "banned", Banned: true}
	barred := PolicyVerdict{Name: "barred", Banned: true, Decision: algorithms.Decision{RetryAfter: algorithms.Never}}
	guessed := PolicyVerdict{Name: "guessed", Guessed: true}
	denied := PolicyVerdict{Name: "denied", Decision: algorithms.Decision{Source: algorithms.Shared}}
	for _, tt := range []struct {
		status   int
		policies []PolicyVerdict
		want     problem.Kind
	}{
		{http.StatusForbidden, []PolicyVerdict{denied, banned, guessed}, problem.Closed},
		{http.StatusForbidden, []PolicyVerdict{banned, barred}, problem.Barred},
		{http.StatusServiceUnavailable, []PolicyVerdict{denied, banned}, problem.Capacity},
		{http.StatusTooManyRequests, []PolicyVerdict{denied, banned, guessed}, problem.Guessed},
		{http.StatusTooManyRequests, []PolicyVerdict{denied, banned}, problem.Banned},
		{http.StatusTooManyRequests, []PolicyVerdict{denied}, problem.Exceeded},
		{http.StatusUnauthorized, []PolicyVerdict{denied}, problem.None},
	} {
		v := Verdict{Status: tt.status, RetryAfter: 1, Policies: tt.policies}
		if got := v.problem(nil).Kind; got != tt.want {
			t.Errorf("%d of %d policies: got kind %d, want %d", tt.status, len(tt.policies), got, tt.want)
		}
	}
}
