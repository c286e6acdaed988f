package settle

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware/internal/findings"
)

// newSettler returns a Settler over a Memory, and its reports.
func newSettler(atOnce bool) (*Settler, *[]Report) {
	var reports []Report
	s := &Settler{Limiter: algorithms.NewMemory(nil), AtOnce: atOnce}
	s.InForce = func(_, _ string, c *algorithms.Check) algorithms.Limit { return c.Limit }
	s.Done = func(r Report) { reports = append(reports, r) }
	return s, &reports
}

// take takes units of a policy.
func take(t *testing.T, s *Settler, l algorithms.Limit, cost int64) *algorithms.Check {
	t.Helper()
	checks := []algorithms.Check{{Policy: "p", Key: "usr=1", Limit: l, Cost: cost}}
	if err := s.Limiter.Allow(t.Context(), checks); err != nil || !checks[0].Decision.Allowed {
		t.Fatalf("got %+v, %v", checks[0].Decision, err)
	}
	return &checks[0]
}

// left returns the units that are left.
func left(t *testing.T, s *Settler, l algorithms.Limit) int64 {
	t.Helper()
	return take(t, s, l, 0).Decision.Remaining
}

var hourly = algorithms.TokenBucket(100, time.Hour)

// TestReservations: what the handler and the totals say decides what stays charged.
func TestReservations(t *testing.T) {
	failures := func(status int) bool { return status >= 400 }
	for name, tt := range map[string]struct {
		chargeIf func(int) bool
		status   int
		total    int64 // -1: none
		want     int64
	}{
		"never settled":          {nil, 200, -1, 10},
		"less":                   {nil, 200, 4, 4},
		"more":                   {nil, 200, 25, 25},
		"it does not count":      {failures, 200, -1, 0},
		"it counts":              {failures, 500, -1, 10},
		"it counts, and is more": {failures, 500, 25, 25},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, reports := newSettler(true)
				p := &Policy{Name: "p", Priced: true, ChargeIf: tt.chargeIf, Ended: func(findings.Ending) {}}
				r := s.Reserve(t.Context(), nil, p, "", take(t, s, hourly, 10))
				r.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if tt.total >= 0 {
						if err := Total(r.Context(), tt.total); err != nil {
							t.Error(err)
						}
					}
					w.WriteHeader(tt.status)
				}), httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil).WithContext(r))
				if got := 100 - left(t, s, hourly); got != tt.want {
					t.Errorf("got %d units charged, want %d", got, tt.want)
				}
				for _, report := range *reports {
					if report.Policy != "p" || report.Err != nil {
						t.Errorf("got %+v, want settlements of p", report)
					}
				}
				if err := Total(r, 50); !errors.Is(err, ErrNotSettled) {
					t.Errorf("got %v after the handler, want ErrNotSettled", err)
				}
			})
		})
	}
}

// TestNothingReserved: a check that nothing can change later has no reservation.
func TestNothingReserved(t *testing.T) {
	s, _ := newSettler(true)
	if r := s.Reserve(t.Context(), nil, &Policy{Name: "p"}, "", take(t, s, hourly, 1)); r != nil {
		t.Errorf("got %v, want none", r)
	}
	if err := Total(t.Context(), 1); !errors.Is(err, ErrNotSettled) {
		t.Errorf("got %v, want ErrNotSettled", err)
	}
}

// TestSettlementsAreBounded: denials have half of the room, Wait waits for all that found room, and no goroutine is left.
func TestSettlementsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, reports := newSettler(false)
		hangs, accepted := make(chan struct{}), 0
		hang := func(context.Context) error { <-hangs; return nil }
		for range 2 * maxWaiting {
			if s.Later("", true, hang) {
				accepted++
			}
			synctest.Wait()
			if len(*reports) > 0 {
				break
			}
		}
		if accepted != maxOfDenials+workers || !(*reports)[0].Dropped {
			t.Errorf("got %d counts of denials, want %d, and a report of the next", accepted, maxOfDenials+workers)
		}
		if !s.Settle("p", algorithms.Check{Policy: "p", Key: "usr=1", Limit: hourly, Op: algorithms.Reset}) {
			t.Error("got no room for a settlement beside the denials")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v while settlements hang, want the end of the context", err)
		}
		close(hangs)
		if err := s.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestHolds: the median is of the last sixteen, from MinHold to the longest.
func TestHolds(t *testing.T) {
	h := new(Holds)
	want := func(d time.Duration) {
		t.Helper()
		if got := h.Median(time.Minute); got != d {
			t.Errorf("got %v after %d holds, want %v", got, h.ended, d)
		}
	}
	want(time.Minute)
	h.add(time.Millisecond)
	want(MinHold)
	for i := range 15 {
		h.add(time.Duration(i+2) * time.Second)
	}
	want(9 * time.Second) // of 1 ms, 2 s to 16 s
	for range 9 {
		h.add(time.Hour)
	}
	want(time.Minute)
}

// A keeper keeps settlements until its store answers.
type keeper struct{ algorithms.Limiter }

func (keeper) Allow(_ context.Context, checks []algorithms.Check) error {
	for i := range checks {
		checks[i].Decision = algorithms.Decision{Allowed: true}
	}
	return nil
}

// A settlement that the limiter keeps is not reported as made, and not as failed.
func TestKeptSettlementsAreNotReported(t *testing.T) {
	for _, atOnce := range []bool{false, true} {
		s, reports := newSettler(atOnce)
		check := algorithms.Check{Policy: "orders", Key: "usr=1", Limit: algorithms.FixedWindow(10, time.Hour), Op: algorithms.Force, Cost: 1}
		for _, limiter := range []algorithms.Limiter{keeper{}, s.Limiter} {
			s.Limiter = limiter
			s.Settle("orders", check)
			if err := s.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if len(*reports) != 1 || (*reports)[0].Err != nil {
			t.Errorf("at once %v: got %+v, want one settlement, by the store that answered", atOnce, *reports)
		}
	}
}
