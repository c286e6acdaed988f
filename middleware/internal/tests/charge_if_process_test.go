package tests

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/penstock-go/penstock/middleware"
)

// How a login ends: the status for its policy, and the status for its client. An answer before a panic counts as it was
// written.
var endings = map[string]struct{ told, seen int }{
	"succeeds":    {200, 200},
	"fails":       {401, 401},
	"panics":      {500, 0},
	"panics-late": {200, 200},
	"hangs-up":    {499, 0},
}

// logins are the requests of clients. One of five counts.
var logins = slices.Concat(slices.Repeat([]string{"succeeds"}, 14), []string{"panics-late", "panics-late", "fails", "fails", "panics", "hangs-up"})

func countsLogin(status int) bool { return status >= 400 }

// logins is a policy that counts what fails.
func (s *site) logins(name string) (ratelimit.Policy, http.Handler) {
	p := byIP(name, s.limit)
	p.ChargeIf = func(status int) bool {
		s.write(strconv.Itoa(status), 1)
		return countsLogin(status)
	}
	return p, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		how := r.PathValue("how")
		s.begin(r, 1)
		s.hold(r, "held")
		if how == "hangs-up" {
			<-r.Context().Done()
		}
		if countsLogin(endings[how].told) {
			s.end(0)
		} else {
			s.end(1)
		}
		switch how {
		case "succeeds":
			w.WriteHeader(http.StatusOK)
		case "fails":
			w.WriteHeader(http.StatusUnauthorized)
		case "panics-late":
			_ = http.NewResponseController(w).Flush() // a broken connection is what it tests
			panic("a bug")
		case "panics":
			panic("a bug")
		}
	})
}

// login sends the next kind of request. A hang-up may come at any time.
func (s *service) login(p *process, turn int) error {
	ctx, cancel := context.Background(), context.CancelFunc(func() {})
	how := logins[turn%len(logins)]
	if how == "hangs-up" {
		ctx, cancel = context.WithTimeout(ctx, rand.N(10*ms))
	}
	defer cancel()
	_, err := s.post(ctx, p, how)
	return err
}

// storm lets all clients of processes log in, some times each.
func (s *service) storm(times int, some ...*process) *sync.WaitGroup {
	all := new(sync.WaitGroup)
	for i, p := range some {
		for c := range clientsEach {
			all.Go(func() {
				for n := range times {
					_ = s.login(p, i+c+7*n) // the books say what became of it
				}
			})
		}
	}
	return all
}

// countedOf returns how many outcomes count.
func countedOf(book map[string]int64) (n int64) {
	for _, e := range []int{401, 499, 500} {
		n += book[strconv.Itoa(e)]
	}
	return n
}

// checkEndings wants the policy to have received the end of each request.
func (s *service) checkEndings(some ...*process) {
	s.Helper()
	book, want := s.books(some...), make(map[int]int64)
	for how, e := range endings {
		want[e.told] += book[begun+how]
	}
	for status, n := range want {
		if got := book[strconv.Itoa(status)]; got != n {
			s.Errorf("the policy received %d of %d requests, want %d", status, got, n)
		}
	}
}

// checkSeen wants clients to have seen the answers that were written.
func (s *service) checkSeen() {
	s.Helper()
	book := s.books(s.all...)
	for how, e := range endings {
		if got, want := s.seen[answer{how, e.seen}], book[begun+how]; how != "hangs-up" && got != want {
			s.Errorf("clients saw %d %d times where it %s, want %d", e.seen, got, how, want)
		}
	}
}

// TestProcessesCountOutcomes: of 200 requests in flight at four processes, exactly the limit may fail, however they
// end. In the end Redis holds these failures only.
func TestProcessesCountOutcomes(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]limiting{"log": hourlyLog, "bucket": yearlyBucket} {
		t.Run(name, func(t *testing.T) { startService(t, modelLogins, 60, limit).countOutcomes(60) })
	}
}

func (s *service) countOutcomes(limit int64) {
	// First all at once, and no request ends before all have been decided.
	hangUp, cancel := context.WithCancel(s.Context())
	defer cancel()
	var first sync.WaitGroup
	for i := range processes * clientsEach {
		ctx, path := context.Background(), logins[i%len(logins)]
		if path == "hangs-up" {
			ctx = hangUp
		} else {
			path += "?held"
		}
		first.Go(func() { _, _ = s.post(ctx, s.all[i%processes], path) }) // the books say what became of it
		if i == len(logins)-1 {
			s.until("some of each kind began", func() bool { return begunOf(s.books(s.all...)) == int64(len(logins)) })
		}
	}
	s.until("all are decided", func() bool {
		return begunOf(s.books(s.all...))+s.answers(http.StatusTooManyRequests) == processes*clientsEach
	})
	if n := begunOf(s.books(s.all...)); n != limit || s.used(0) != limit {
		s.Errorf("%d began, and %d are used, of %d at once; want %d", n, s.used(0), processes*clientsEach, limit)
	}
	cancel()
	s.releases(s.all...)
	first.Wait()

	// Then all clients again and again, while the first requests give back.
	s.storm(4, s.all...).Wait()
	s.await(s.all...)
	s.fill("fails", s.all...)
	s.stop(s.all...)

	book := s.books(s.all...)
	s.Logf("%d began, %d counted: %v", begunOf(book), countedOf(book), book)
	n := s.used(0) - countedOf(book)
	if s.used(0) != limit || n < 0 || n > rounding(s.limit(limit)) {
		s.Errorf("%d counted, and %d are used, want %d of each", countedOf(book), s.used(0), limit)
	}
	if begunOf(book) <= limit {
		s.Errorf("%d began: none took the place of others", begunOf(book))
	}
	s.checkEndings(s.all...)
	s.checkSeen()
	s.checkBooks()
}

// TestKilledProcessKeepsWhatItReserved: the requests in flight of a killed process stay reserved until their window
// ends. The other processes go on, and admit the rest.
func TestKilledProcessKeepsWhatItReserved(t *testing.T) {
	t.Parallel()
	const limit, held = 80, 10
	s := startService(t, modelLogins, limit, hourlyLog)
	doomed, living := s.all[0], s.all[1:]

	client := s.start(job{Hangs: living[0].url + "/hangs-up"})
	s.until("it asks", func() bool { return s.books(living[0])[begun+"hangs-up"] == asking })
	client.Kill()
	s.until("what it asked has failed", func() bool { return s.books(living[0])["499"] == asking })

	var others sync.WaitGroup
	for range held {
		others.Go(func() { s.ask(doomed, "succeeds?held") })
	}
	s.until("they are held", func() bool { return s.books(doomed)[begun+"succeeds"] == held })
	dying, kill := context.WithCancel(s.Context())
	defer kill()
	for c := range clientsEach {
		others.Go(func() {
			for n := 0; ; n++ {
				if err := s.login(doomed, c+7*n); err != nil && dying.Err() != nil {
					return
				}
			}
		})
	}
	storm, before := s.storm(4, living...), s.answers(0)
	s.until("there is a storm", func() bool { return s.answers(0) > before+200 })
	kill()
	doomed.Kill()
	others.Wait()
	storm.Wait()
	s.await(living...)
	s.fill("fails", living...)
	s.stop(living...)

	// Units without a request: at most one request of each client of the killed process, and its unfinished returns.
	all, dead := s.books(s.all...), s.books(doomed)
	n, most := s.used(0)-countedOf(all), held+clientsEach+dead[due]-dead[settled]
	s.Logf("%d counted, %d of at most %d are stranded: %v", countedOf(all), n, most, all)
	if s.used(0) != limit || n < held || n > most {
		t.Errorf("%d are used and %d stranded, want %d and %d to %d", s.used(0), n, limit, held, most)
	}
	s.checkEndings(living...)
	if n := s.used(time.Hour + time.Minute); n != 0 {
		t.Errorf("%d are used an hour later, want none", n)
	}
	s.checkBooks()
}
