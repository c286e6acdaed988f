package shared

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/redistest"
)

// Nobody behind a limit that does not fit denies the call. Nothing else of it is charged, and a candidate of the pair is
// judged by itself.
func TestNobodyBehindAPair(t *testing.T) {
	t.Parallel()
	limit := algorithms.TokenBucket(10, time.Hour)
	for name, client := range map[string]Client{"one server": redistest.Start(t).Client(), "cluster": redistest.StartCluster(t).Client()} {
		r := newRedis(t, client, nil)
		for _, spent := range []bool{false, true} {
			checks := []algorithms.Check{
				{Policy: "beside", Key: "usr=1", Limit: limit, Cost: 1},
				{Policy: "plan", Key: "usr=1", Limit: limit, Cost: 10},
				{Policy: "credits", Key: "usr=1", Limit: algorithms.Nobody(), Cost: 10, Op: algorithms.TakeElse},
				{Policy: "trial", Key: "usr=1", Limit: limit, Cost: 1, Op: algorithms.TrialInstead},
			}
			if err := r.Allow(t.Context(), checks); err != nil {
				t.Fatal(err)
			}
			if got := algorithms.Allowed(checks); got == spent {
				t.Errorf("%s: got %t with a plan that is spent: %t", name, got, spent)
			}
			if beside, trial := checks[0].Decision, checks[3].Decision; beside.Remaining != 9 && !spent || beside.Receipt.Units() != 0 && spent || trial.Receipt.Units() != 1 {
				t.Errorf("%s: got %+v beside the pair, and %+v for the trial", name, beside, trial)
			}
		}
	}
}
