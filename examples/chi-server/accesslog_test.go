// An access log for tests: JSON lines, which a replay decides exactly as the server did.
//
// A replay agrees with the server only if it decides at the same instants in the same
// order. So the limiter's clock stands still during a decision, decisions happen one
// after the other, no two have the same µs, and a line has the instant of its decision.
// A line also has what was settled after the decision, and so all lines are written at the
// end, in the order of the decisions.

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	chimiddleware "github.com/go-chi/chi/v5/middleware"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
)

// An accessLog is a limiter that notes when another limiter decides.
type accessLog struct {
	limiter  algorithms.Limiter
	clientIP keyfunc.Key
	settles  map[string]bool // policies whose units may be returned or forced
	now      atomic.Int64    // µs: the instant of the decision

	deciding sync.Mutex // one decision at a time

	mu    sync.Mutex // guards the fields below
	file  *os.File
	taken map[taken]*logged
	lines []*logged
}

// taken identifies a take, whose settlements have its receipt.
type taken struct {
	policy, key string
	receipt     algorithms.Receipt
}

// logged is a line.
type logged struct {
	Time     time.Time    `json:"time"`
	Address  string       `json:"address"`
	User     string       `json:"user,omitempty"`
	Method   string       `json:"method"`
	Path     string       `json:"path"`
	Status   int          `json:"status"`
	Bytes    int          `json:"bytes"`
	Duration float64      `json:"duration"` // s
	Settled  []settlement `json:"settled"`  // null: nothing could be settled

}

// A settlement is what was charged after the decision, or returned if it is negative.
type settlement struct {
	At     time.Time `json:"at"`
	Policy string    `json:"policy"`
	Units  int64     `json:"units"`
}

func newAccessLog(name string, clientIP keyfunc.Key) (*accessLog, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	l := &accessLog{
		clientIP: clientIP, settles: make(map[string]bool), file: f, taken: make(map[taken]*logged),
	}
	l.now.Store(time.Now().UnixMicro())
	for _, row := range limits {
		for _, p := range row {
			l.settles[p.Name] = p.ChargeIf != nil || p.Cost != nil
		}
	}
	return l, nil
}

// clock is the clock for the limiter.
func (l *accessLog) clock() time.Time { return time.UnixMicro(l.now.Load()) }

// of notes when limiter decides.
func (l *accessLog) of(limiter algorithms.Limiter) algorithms.Limiter {
	l.limiter = limiter
	return l
}

// Unwrap returns the limiter that decides.
func (l *accessLog) Unwrap() algorithms.Limiter { return l.limiter }

// Allow implements algorithms.Limiter.
func (l *accessLog) Allow(ctx context.Context, checks []algorithms.Check) error {
	l.deciding.Lock()
	defer l.deciding.Unlock()
	now := l.tick()
	l.noteSettlements(checks, now) // before a Return replaces its receipt
	if err := l.limiter.Allow(ctx, checks); err != nil {
		return err
	}
	if line, ok := ctx.Value(loggedKey{}).(*logged); ok {
		l.noteTakes(line, checks, now)
	}
	return nil
}

// tick returns an instant that no decision has had.
func (l *accessLog) tick() time.Time {
	now := max(time.Now().UnixMicro(), l.now.Load()+1)
	l.now.Store(now)
	return time.UnixMicro(now).UTC()
}

// noteTakes notes when a request was decided, who was counted, and what it has reserved.
func (l *accessLog) noteTakes(line *logged, checks []algorithms.Check, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range checks {
		c := &checks[i]
		if c.Op != algorithms.Take {
			continue
		}
		line.Time = now
		if user, ok := strings.CutPrefix(c.Key, "usr="); ok {
			user, _, _ = strings.Cut(user, "|")
			line.User, _ = url.PathUnescape(strings.Clone(user)) // keyfunc has escaped it
		}
		if l.settles[c.Policy] && c.Decision.Receipt.Units() > 0 {
			l.taken[taken{c.Policy, strings.Clone(c.Key), c.Decision.Receipt}] = line
			line.Settled = []settlement{}
		}
	}
}

// noteSettlements notes what is charged or returned later.
func (l *accessLog) noteSettlements(checks []algorithms.Check, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range checks {
		c := &checks[i]
		line := l.taken[taken{c.Policy, c.Key, c.Decision.Receipt}]
		switch {
		case line == nil:
		case c.Op == algorithms.Return:
			line.Settled = append(line.Settled, settlement{At: now, Policy: c.Policy, Units: -c.Cost})
		case c.Op == algorithms.Force:
			line.Settled = append(line.Settled, settlement{At: now, Policy: c.Policy, Units: c.Cost})
		}
	}
}

type loggedKey struct{}

// middleware logs the requests that next serves.
func (l *accessLog) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		address, _, _ := l.clientIP.Append(nil, &keyfunc.Request{Request: r}) // "" is no address
		line := &logged{Address: strings.TrimPrefix(string(address), "ip="), Method: r.Method, Path: r.RequestURI}
		status := chimiddleware.NewWrapResponseWriter(w, r.ProtoMajor)
		begun := time.Now()
		defer func() {
			line.Status, line.Bytes, line.Duration = status.Status(), status.BytesWritten(), time.Since(begun).Seconds()
			l.end(line)
		}()
		next.ServeHTTP(status, r.WithContext(context.WithValue(r.Context(), loggedKey{}, line)))
	})
}

// end keeps the line of a request that has ended.
func (l *accessLog) end(line *logged) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if line.Time.IsZero() { // no policy has decided it
		line.Time = time.Now().UTC()
	}
	l.lines = append(l.lines, line)
}

// close writes all lines. Close the limiters before.
func (l *accessLog) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.SortFunc(l.lines, func(a, b *logged) int { return a.Time.Compare(b.Time) })
	out := bufio.NewWriter(l.file)
	lines := json.NewEncoder(out)
	for _, line := range l.lines {
		_ = lines.Encode(line) // the first error of the file stays with out
	}
	return errors.Join(out.Flush(), l.file.Close())
}
