// The judge of an episode. algorithms/shared/OUTAGES.md has the bounds.

package fleet

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

const (
	// apartFor is how long an instance may still be without Redis after an outage.
	apartFor = 2 * time.Second

	// decidesIn bounds the wait for a decision: two of the deadlines, for a call
	// that waits behind others or for a connection.
	decidesIn = 2*50*time.Millisecond + time.Millisecond

	// leastPercent of a bucket is admitted.
	leastPercent = 90
)

// An account is an episode as the judge counts it.
type account struct {
	*stage
	clients   []sum
	uncharged int64 // requests that were admitted without Redis and that it has not received since
	unlike    map[string]int
	first     map[string]string // the first failure of each kind
}

// A sum is the units that one client was admitted.
type sum struct {
	shared, local int64
	took          []time.Time // the units through Redis
}

// most returns the most units through Redis beyond what a rate allows, over all intervals: those
// that end before an instant, and all.
func (s *sum) most(rate float64, before time.Time) (early, all int64) {
	slices.SortFunc(s.took, time.Time.Compare)
	level, most := 0.0, 0.0
	for i, at := range s.took {
		if i > 0 {
			level = max(0, level-rate*at.Sub(s.took[i-1]).Seconds())
		}
		level++
		most = max(most, level)
		if at.Before(before) {
			early = int64(math.Ceil(most))
		}
	}
	return early, int64(math.Ceil(most))
}

func (a *account) failf(kind, format string, args ...any) {
	if a.unlike[kind]++; a.unlike[kind] == 1 {
		a.first[kind] = fmt.Sprintf(format, args...)
	}
}

// judge compares an episode with what penstock promises.
func (r *run) judge(t *testing.T, st *stage) {
	t.Helper()
	a := &account{stage: st, clients: make([]sum, r.clients), unlike: make(map[string]int), first: make(map[string]string)}
	r.books.mu.Lock()
	defer r.books.mu.Unlock()
	for _, rec := range r.books.records {
		a.judgeAnswer(rec)
		a.judgeCharges(rec, r.books.charged(rec, policyRequests), r.books.charged(rec, policyTokens))
	}
	r.judgeClients(a)
	r.judgeHandBack(a)
	for kind, n := range a.unlike {
		t.Errorf("%s: %d times, first: %s\n%v\n%v\nagain: %s=%d go test -count=1 -run '^TestFleet$' ./algorithms/internal/fleet",
			kind, n, a.first[kind], r.plan, st.episode, envSeeds, r.seed)
	}
}

// near reports whether a request was under way while an instance was without Redis.
func (st *stage) near(rec *record) bool {
	return rec.ended.After(st.from) && rec.began.Before(st.until.Add(apartFor))
}

// refused reports whether an instance decided a request and settled it while Redis
// certainly executed nothing.
func (a *account) refused(rec *record) bool {
	return a.outage.trouble == refused && !a.outage.flaps && rec.hangsUp == 0 && rec.decided.Equal(rec.began) &&
		rec.began.After(a.from.Add(a.outage.apart)) && rec.ended.Before(a.from.Add(a.outage.lasts))
}

// judgeAnswer judges the answer to a request.
func (a *account) judgeAnswer(rec *record) {
	closed := rec.path == pathLogin
	switch {
	case rec.hangsUp > 0 && rec.status >= 500: // the client has gone
	case rec.status >= 500 && !closed:
		a.failf("a 5xx without FailClosed", "%v", rec)
	case rec.status >= 500 && !a.near(rec):
		a.failf("a 5xx while Redis was there", "%v, %v after the outage", rec, rec.began.Sub(a.until))
	case rec.decided.IsZero():
		return // the client hung up
	}
	if rec.decided.Sub(rec.began) > decidesIn {
		a.failf("a late decision", "%v: after %v", rec, rec.decided.Sub(rec.began))
	}
	if rec.admitted && rec.source != algorithms.Shared && !a.near(rec) {
		a.failf("a local decision while Redis was there", "%v, %v after the outage", rec, rec.began.Sub(a.until))
	}
	if rec.admitted && !closed {
		if s := &a.clients[rec.client]; rec.source == algorithms.Local {
			s.local++
		} else {
			s.shared++
			s.took = append(s.took, rec.decided)
		}
	}
}

// judgeCharges judges the units that Redis has charged for a request.
func (a *account) judgeCharges(rec *record, requests, tokens int64) {
	if requests > 1 || requests < 0 || tokens > max(reserved, rec.tokens) || tokens < 0 {
		a.failf("a request charged twice", "%v: %d times, %d tokens", rec, requests, tokens)
	}
	if a.refused(rec) && tokens > rec.tokens {
		a.failf("returned units that are handed back", "%v: charged %d tokens, want %d", rec, tokens, rec.tokens)
	}
	switch {
	case rec.hangsUp > 0 || rec.decided.IsZero():
	case rec.admitted && rec.source == algorithms.Shared:
		if requests != 1 && !a.near(rec) {
			a.failf("an admitted request that is not charged", "%v", rec)
		}
		if rec.path == pathTokens && tokens != rec.tokens && !a.near(rec) {
			a.failf("a settled request", "%v: charged %d tokens, want %d", rec, tokens, rec.tokens)
		}
	}
	switch {
	case rec.hangsUp > 0 || rec.decided.IsZero():
	case rec.admitted && requests == 0:
		a.uncharged++
	case !rec.admitted && requests+tokens > 0 && !a.near(rec):
		a.failf("a denied request that is charged", "%v: %d times, %d tokens", rec, requests, tokens)
	}
}

// judgeClients judges the units that each client was admitted.
func (r *run) judgeClients(a *account) {
	burst, rate, n := r.limit.Burst(), r.limit.Requests(), int64(r.instances)
	in := func(d time.Duration) int64 { return int64(d) * rate / int64(r.limit.Window()) }
	offered := burst + in(a.ended.Sub(a.began))
	shared, local := burst+1+in(decidesIn), burst+in(a.outage.lasts+apartFor)+n
	if a.outage.loses {
		shared += burst
	}
	ahead := burst * int64(r.ahead) / 100
	quiet := burst + 1 + in(decidesIn) + ahead // before the outage
	shared += ahead
	if r.ahead > 0 {
		shared += ahead                               // an outage leaves views without answers
		shared += int64(len(r.retired)) * (ahead / n) // an instance that starts knows nothing
		if a.deploy.kills {
			shared += int64(len(r.retired)) * (ahead / n) // never charged
		}
	}
	local += int64(len(r.retired)) * (burst/n + 1) // an instance that starts knows nothing
	usable := offered
	if burst <= n {
		// A share of one unit is full after one interval of its rate, and then waits half
		// an interval for the next request: a third of the share is lost.
		usable -= in(a.outage.lasts+a.outage.apart) / 3
	}
	for c, s := range a.clients {
		if early, most := s.most(float64(rate)/r.limit.Window().Seconds(), a.from); early > quiet || most > shared {
			a.failf("too much through Redis", "client %d: %d units beyond the rate, want at most %d; before the outage %d, want at most %d", c, most, shared, early, quiet)
		}
		if s.local > local {
			a.failf("too much without Redis", "client %d: %d units, want at most %d", c, s.local, local)
		}
		if all := s.shared + s.local; all*100 < usable*leastPercent {
			a.failf("too little", "client %d: %d units, %d %% of %d", c, all, all*100/usable, usable)
		}
	}
}

// judgeHandBack judges whether Redis has received the requests that were admitted without
// it. The instances may count some of them as lost.
func (r *run) judgeHandBack(a *account) {
	known, admittedAhead := int64(0), uint64(0)
	for _, in := range r.retired {
		s := in.limiter.Stats()
		admittedAhead += s.Ahead.Admitted
		known += int64(s.Fallback.Owed) + int64(s.Fallback.Lost) + s.Fallback.Unknown
	}
	for _, s := range r.slots {
		st := s.instance.limiter.Stats()
		admittedAhead += st.Ahead.Admitted
		if st.Ahead.Unacknowledged != 0 {
			a.failf("charges that do not end", "%d units", st.Ahead.Unacknowledged)
		}
		known += int64(st.Fallback.Lost) + st.Fallback.Unknown
		if st.Fallback.Owed > 0 {
			a.failf("a hand-back that does not end", "%d keys are owed", st.Fallback.Owed)
		}
		if st.Fallback.Open > 0 {
			a.failf("an open circuit", "since %v", a.until)
		}
		if st.Fallback.Instances != r.instances {
			a.failf("a census", "%d instances, want %d", st.Fallback.Instances, r.instances)
		}
	}
	if (admittedAhead > 0) != (r.ahead > 0) {
		a.failf("admitted ahead", "%d calls", admittedAhead)
	}
	if a.uncharged > known {
		a.failf("a hand-back", "Redis lacks %d requests that were admitted without it, want at most the %d that are lost or unknown", a.uncharged, known)
	}
}

// charged returns the units that the server has charged to a request.
func (b *books) charged(rec *record, policy string) int64 {
	var key strings.Builder
	fmt.Fprintf(&key, "penstock:{hdr.%s=%s}:%s:tb", strings.ToLower(headerRequest), rec.id, policy)
	return b.charges[key.String()]
}

func (rec *record) String() string {
	return fmt.Sprintf("request %s of client %d to %s at %v: %d %s, %v, decided after %v", rec.id, rec.client, rec.path,
		rec.began.Format("15:04:05.000"), rec.status, http.StatusText(rec.status), rec.source, rec.decided.Sub(rec.began))
}
