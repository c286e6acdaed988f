// Tests of the workers of one account, whose requests reach four instances with one Redis.

package tests

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// An outsider is one of four instances. Its limiter runs outside of the test's bubble.
type outsider struct{ *outside }

func (outsider) Stats() (s algorithms.Stats) {
	s.Fallback.Instances = 4
	return s
}

// newOutsiders returns the limiters of four instances with one Redis.
func newOutsiders(t *testing.T) (all []algorithms.Limiter) {
	server := redistest.Start(t)
	for range 4 {
		all = append(all, outsider{outsideOf(t, server.Client())})
	}
	return all
}

// TestWorkersOfAnAccountInRedis: few calls fail, and workers who try without end send few requests.
func TestWorkersOfAnAccountInRedis(t *testing.T) {
	t.Parallel()
	inRedis(t, account{workers: 2, calls: 10, attempts: 3}, 1, 2.2)
	inRedis(t, account{workers: 10, calls: 20, attempts: 3}, 1, 2.2)
	inRedis(t, account{workers: 30, calls: 3}, 0, 2.2)
}

// TestAccountsInRedis is the whole table.
func TestAccountsInRedis(t *testing.T) {
	longtest.Skip(t)
	for _, workers := range []int{1, 2, 5, 10, 30} {
		inRedis(t, account{workers: workers, calls: 20, attempts: 3}, 1, 2.2)
	}
	inRedis(t, account{workers: 100, calls: 20, attempts: 3}, 45, 6)
	inRedis(t, account{workers: 30, calls: 10}, 0, 2.2)
	inRedis(t, account{workers: 30, calls: 10, limit: algorithms.SlidingWindowCounter(60, perMinute.Window())}, 0, 2.2)
}

// inRedis judges the workers of an account in Redis: the per cent of its calls that fail, and its requests per success.
func inRedis(t *testing.T, a account, failing, perSuccess float64) {
	t.Helper()
	if a.limit == (algorithms.Limit{}) {
		a.limit = perMinute
	}
	a.limiters, a.name = newOutsiders(t), fmt.Sprint(a.workers, a.attempts)
	synctest.Test(t, func(t *testing.T) {
		h := a.work(t, 1)
		t.Logf("%v, %d workers, %d attempts: %.2f %% of the calls fail, %.2f requests per success", a.limit, a.workers, a.attempts, h.failing(), h.perSuccess())
		if h.failing() > failing || h.perSuccess() > perSuccess {
			t.Errorf("%v, %d workers, %d attempts: %.2f %% of the calls fail, with %.2f requests per success, want at most %v %% and %v",
				a.limit, a.workers, a.attempts, h.failing(), h.perSuccess(), failing, perSuccess)
		}
	})
}
