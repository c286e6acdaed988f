// Tests of the fake limiter, which many tests of other packages rely on.

package limitertest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/limitertest"
)

var hourly = algorithms.FixedWindow(10, time.Hour)

func ask(f algorithms.Limiter, ctx context.Context, op algorithms.Op, cost int64) (algorithms.Decision, error) {
	checks := []algorithms.Check{{Policy: "p", Key: "k", Limit: hourly, Op: op, Cost: cost}}
	err := f.Allow(ctx, checks)
	return checks[0].Decision, err
}

func TestFakeAnswersAsShared(t *testing.T) {
	t.Parallel()
	f := limitertest.NewFake()
	for _, source := range []algorithms.Source{algorithms.Shared, algorithms.Local, algorithms.Undecided} {
		f.As(source)
		if d, err := ask(f, t.Context(), algorithms.Take, 1); err != nil || d.Source != source || !d.Allowed {
			t.Errorf("as %v: got %+v, %v", source, d, err)
		}
	}
	if d, err := ask(f.Memory, t.Context(), algorithms.Take, 0); err != nil || d.Remaining != 7 {
		t.Errorf("got %+v, %v, want the three units charged to Memory", d, err)
	}
}

func TestFakeReturns(t *testing.T) {
	t.Parallel()
	f := limitertest.NewFake()
	checks := []algorithms.Check{{Policy: "p", Key: "k", Limit: hourly, Cost: 4}}
	for _, want := range []int64{6, 10} {
		if err := f.Allow(t.Context(), checks); err != nil || checks[0].Decision.Remaining != want {
			t.Errorf("%v: got %+v, %v, want %d remaining", checks[0].Op, checks[0].Decision, err, want)
		}
		checks[0].Op = algorithms.Return
	}
}

func TestFakeInTroubleChargesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := limitertest.NewFake()
		refused := errors.New("refused")
		f.Fail(refused)
		if _, err := ask(f, t.Context(), algorithms.Take, 1); !errors.Is(err, refused) {
			t.Errorf("Fail: got %v, want its error", err)
		}
		f.Hang()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		_, err := ask(f, ctx, algorithms.Take, 1)
		if spent := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || spent != time.Minute {
			t.Errorf("Hang: got %v after %v, want the context's error when it ends", err, spent)
		}
		f.Fail(nil)
		if d, err := ask(f, t.Context(), algorithms.Take, 1); err != nil || d.Remaining != 9 {
			t.Errorf("got %+v, %v, want the first unit charged", d, err)
		}
	})
}

func TestFakeRunsFunctions(t *testing.T) {
	t.Parallel()
	f := limitertest.NewFake()
	refused := errors.New("refused")
	f.Before(func(_ context.Context, checks []algorithms.Check) error {
		if checks[0].Op == algorithms.Force {
			return refused
		}
		return nil
	})
	var after int
	f.After(func(checks []algorithms.Check) {
		after++
		if checks[0].Decision.Source != algorithms.Shared {
			t.Errorf("After: got %+v, want the answer", checks[0].Decision)
		}
		f.After(nil) // functions may use the Fake
	})
	if _, err := ask(f, t.Context(), algorithms.Force, 1); !errors.Is(err, refused) || after != 0 {
		t.Errorf("got %v, and After called %d times, want the error of Before to end the call", err, after)
	}
	for range 2 {
		if _, err := ask(f, t.Context(), algorithms.Take, 1); err != nil || after != 1 {
			t.Errorf("got %v, and After called %d times, want once", err, after)
		}
	}
}

func TestFakeRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := limitertest.NewFake()
		f.Fail(errors.New("refused")) // asked all the same
		began := time.Now()
		for cost := range int64(3) {
			_, _ = ask(f, t.Context(), algorithms.Take, cost)
			time.Sleep(time.Second)
		}
		asked := f.Asked()
		if len(asked) != 3 || asked[2].Cost != 2 || asked[2].At != began.Add(2*time.Second) || asked[2].Place != 0 {
			t.Errorf("got %+v, want three checks, a second apart", asked)
		}
		if got := f.Drain(); len(got) != 3 || len(f.Asked()) != 0 {
			t.Errorf("Drain: got %d checks, and %d afterwards, want 3 and none", len(got), len(f.Asked()))
		}
		f.Silence()
		_, _ = ask(f, t.Context(), algorithms.Take, 1)
		if got := f.Asked(); len(got) != 0 {
			t.Errorf("silent: got %+v, want no record", got)
		}
	})
}
