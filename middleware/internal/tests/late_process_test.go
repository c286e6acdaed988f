// Tests of late costs in several processes. Some of them are killed.

package tests

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

// reserve is the reservation of a request. No request costs more than twice that, so no debt reaches its bound.
const reserve = 10

// totals are the costs of requests, in turn. A request that reports "nothing" keeps its reservation.
var totals = []string{"0", "20", "3", "nothing", "7", "1", "10", "13", "5", "2-panics"}

// tokens is a policy whose costs are known late.
func (s *site) tokens(name string) (ratelimit.Policy, http.Handler) {
	return lateByIP(name, s.limit, reserve), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		s.begin(r, reserve)
		s.hold(r, "held")
		if r.URL.Query().Has("hangs") {
			<-r.Context().Done()
		}
		how, panics := strings.CutSuffix(r.PathValue("how"), "-panics")
		total, err := strconv.ParseInt(how, 10, 64)
		if err != nil {
			s.write(units, reserve)
			s.end(0)
			return
		}
		for _, soFar := range []int64{total / 2, total, total / 3} {
			if err := ratelimit.Settle(r.Context(), soFar, name); err != nil {
				s.Error(err)
			}
		}
		s.write(units, total)
		s.hold(r, "told")
		s.end(reserve - total)
		if panics {
			panic("a bug")
		}
	})
}

// use sends n requests from each client of each process.
func (s *service) use(times int, some ...*process) *sync.WaitGroup {
	all := new(sync.WaitGroup)
	for i, p := range some {
		for c := range clientsEach {
			all.Go(func() {
				for n := range times {
					s.ask(p, totals[(i+c+7*n)%len(totals)])
				}
			})
		}
	}
	return all
}

// exact reports whether Redis counts the costs of all requests, plus a number.
func (s *service) exact(more int64) bool {
	book := s.books(s.all...)
	n := s.used(0) - book[units] - more
	return 0 <= n && n <= rounding(s.limit(1))
}

// TestProcessesSettle: Redis counts the cost of 200 requests in flight at four processes, to the unit. While the cost
// exceeds the limit, all clients are denied everywhere, until one reservation fits.
func TestProcessesSettle(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]limiting{"window": yearlyWindow, "bucket": yearlyBucket} {
		t.Run(name, func(t *testing.T) { startService(t, modelTokens, 1_500, limit).settle(1_500) })
	}
}

func (s *service) settle(limit int64) {
	// First all at once, and no request reports its cost before all have been decided.
	var first, last sync.WaitGroup
	for i := range processes * clientsEach {
		first.Go(func() { s.ask(s.all[i%processes], totals[i%len(totals)]+"?held") })
	}
	s.until("all are decided", func() bool {
		return begunOf(s.books(s.all...))+s.answers(http.StatusTooManyRequests) == processes*clientsEach
	})
	if n := reserve * begunOf(s.books(s.all...)); n != limit || s.used(0) != limit {
		s.Errorf("%d are reserved, and %d used, by %d at once; want %d", n, s.used(0), processes*clientsEach, limit)
	}
	s.releases(s.all...)
	first.Wait()
	s.await(s.all...)
	if !s.exact(0) {
		s.Errorf("%d are used, want what the first cost: %v", s.used(0), s.books(s.all...))
	}

	// Then all clients again and again, while one request at each process exceeds its reservation when the limit is
	// spent.
	before := begunOf(s.books(s.all...))
	hangUp, cancel := context.WithCancel(s.Context())
	defer cancel()
	for _, p := range s.all {
		last.Go(func() { // there is no answer, except where the process still remembers a denial, for a second at most
			for status := http.StatusTooManyRequests; status == http.StatusTooManyRequests; {
				status, _ = s.post(hangUp, p, "20?hangs")
			}
		})
	}
	s.until("the last began", func() bool { return begunOf(s.books(s.all...)) == before+processes })
	s.use(4, s.all...).Wait()
	s.fill("10", s.all...)
	cancel()
	last.Wait()
	s.await(s.all...)
	if n := s.used(0); n <= limit {
		s.Errorf("%d are used, want more than %d", n, limit)
	}
	for _, p := range s.all {
		if got := s.ask(p, "0"); got != http.StatusTooManyRequests {
			s.Errorf("%s: got %d of who is in debt, want 429", p.name, got)
		}
	}
	granted := int64(0)
	if rounding(s.limit(limit)) == 0 {
		granted = s.payOff(limit)
	}
	s.stop(s.all...)

	s.Log(s.books(s.all...))
	if !s.exact(-granted) {
		s.Errorf("%d are used, want what requests cost, less %d: %v", s.used(0), granted, s.books(s.all...))
	}
	s.checkBooks()
}

// payOff grants the units that one request needs, and returns their number.
func (s *service) payOff(limit int64) int64 {
	missing := s.used(0) + reserve - limit
	check := algorithms.Check{Policy: s.job.Policy, Key: everyone, Limit: s.limit(limit)}
	grant := func(n int64) {
		c := check
		c.Op, c.Cost = algorithms.Grant, n
		s.do(&c, 0)
	}
	grant(missing - 1)
	early := check
	early.Cost = reserve
	if s.do(&early, 0); early.Decision.Allowed {
		s.Error("a request was admitted a unit early")
	}
	grant(1)
	var admitted []string
	s.until("one is admitted", func() bool { // by processes that remember a denial for a second
		for _, p := range s.all {
			if s.ask(p, "10") == http.StatusOK {
				admitted = append(admitted, p.name)
			}
		}
		return admitted != nil
	})
	if len(admitted) != 1 {
		s.Errorf("admitted by %q, want one", admitted)
	}
	return missing
}

// TestKilledProcessSettlesNoMore: the requests in flight of a killed process stay charged their reservation, or the
// total that they reported if that is larger. The others settle to the unit.
func TestKilledProcessSettlesNoMore(t *testing.T) {
	t.Parallel()
	const held = 5
	s := startService(t, modelTokens, 1_500, yearlyWindow)
	doomed, living := s.all[0], s.all[1:]
	var dead sync.WaitGroup
	for range held {
		dead.Go(func() { s.ask(doomed, "3?told") })
		dead.Go(func() { s.ask(doomed, "16?told") })
	}
	s.until("they told", func() bool { b := s.books(doomed); return b[units] == held*(3+16) && b[settled] == held })
	use := s.use(4, living...)
	s.until("others do, too", func() bool { return s.answers(0) > 100 })
	doomed.Kill()
	dead.Wait()
	use.Wait()
	s.fill("10", living...)
	s.stop(living...)
	s.Log(s.books(s.all...))
	if more := int64(held * (reserve - 3)); !s.exact(more) {
		s.Errorf("%d are used, want what requests cost and %d more: %v", s.used(0), more, s.books(s.all...))
	}
	s.checkBooks()
}
