// The page's requests, answered without a server.

package instruments

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

const policy = "sandbox"

// A Tab answers the requests that the page sends, in place of the example server. It
// has no routes of an API, and no Redis. Use [NewTab]. It is not safe for concurrent
// use.
type Tab struct {
	memory *algorithms.Memory
	limits map[string]algorithms.Limit // by the ID of a sandbox
}

// NewTab returns a Tab without sandboxes. now is its clock; nil means the clock of
// the system.
func NewTab(now func() time.Time) *Tab {
	return &Tab{
		memory: algorithms.NewMemory(&algorithms.MemoryOptions{Now: now}),
		limits: make(map[string]algorithms.Limit),
	}
}

// An Answer is a response.
type Answer struct {
	Status int
	Fields [][2]string // names and values of header fields
	Body   string
	Hold   time.Duration // the page receives the answer after it
}

// Answer answers a request as the example server does, with the default headers. It
// differs from a middleware in one point: several denied requests of a client hear
// the same Retry-After, and not each a later one.
func (t *Tab) Answer(method, target, body string) Answer {
	u, err := url.Parse(target)
	if err != nil {
		return refuse(400, "want a path")
	}
	id, what, _ := strings.Cut(strings.TrimPrefix(u.Path, "/demo/sandboxes/"), "/")
	_, known := t.limits[id]
	switch path := method + " " + u.Path; {
	case path == "GET /demo/routes":
		return answer(200, map[string]any{"routes": []string{}, "redis": false, "server": "tab"})
	case path == "GET /demo/compare":
		return Compare(context.Background(), u.Query())
	case path == "POST /demo/sandboxes":
		id := "TAB" + strings.Repeat("A", 20) + strconv.FormatInt(int64(len(t.limits)), 32) // as long as the server's, which the page shortens
		return t.set(201, id, body)
	case !known:
		return refuse(404, "there is no such sandbox")
	case what == "limit":
		return t.set(200, id, body)
	case what == "requests":
		return t.request(id, Cost(u.Query()))
	default:
		return t.level(id)
	}
}

// Cost is the cost that the page asks for, cost=3: at least 1, and at most [MaxUnits].
func Cost(query url.Values) int64 {
	n, err := strconv.ParseInt(query.Get("cost"), 10, 64)
	if err != nil {
		return 1
	}
	return min(max(n, 1), MaxUnits)
}

// set gives a sandbox, which may be new, the limit of {"limit":"10/10s"}.
func (t *Tab) set(status int, id, body string) Answer {
	var ask struct{ Limit string }
	if json.Unmarshal([]byte(body), &ask) != nil {
		return refuse(400, "want a small JSON object")
	}
	limit, why := ReadLimit(ask.Limit)
	if why != "" {
		return refuse(400, why)
	}
	t.limits[id] = limit
	made := map[string]any{"limit": limit.String()}
	if status == 201 {
		made["id"] = id
	}
	return answer(status, made)
}

func (t *Tab) request(id string, cost int64) Answer {
	d, err := t.decide(id, cost)
	if err != nil {
		return refuse(500, "the limiter has failed")
	}
	held := d.Delay
	a := answer(200, map[string]any{"served": true, "held_ms": held.Milliseconds()})
	if !d.Allowed {
		a = denied(d)
	}
	a.Hold = held
	a.Fields = append(a.Fields, quotaFields(t.limits[id], d)...)
	return a
}

// level answers the units that are left, and takes nothing.
func (t *Tab) level(id string) Answer {
	d, err := t.decide(id, 0)
	if err != nil {
		return refuse(500, "the limiter has failed")
	}
	limit := t.limits[id]
	return answer(200, map[string]any{"remaining": d.Remaining, "burst": limit.Burst(), "limit": limit.String(), "source": d.Source.String()})
}

func (t *Tab) decide(id string, cost int64) (algorithms.Decision, error) {
	checks := []algorithms.Check{{Policy: policy, Key: policy + "=" + id, Limit: t.limits[id], Cost: cost}}
	err := t.memory.Allow(context.Background(), checks)
	return checks[0].Decision, err
}

func refuse(status int, why string) Answer { return answer(status, map[string]any{"error": why}) }

func answer(status int, body any) Answer {
	text, err := json.Marshal(body)
	if err != nil { // no value of this package has this error
		status, text = 500, nil
	}
	return Answer{Status: status, Body: string(text), Fields: [][2]string{{"Content-Type", "application/json"}, {"Cache-Control", "no-store"}}}
}

// MaxUnits bounds the requests and the burst of a limit, and the cost of a request.
const MaxUnits = 100

const (
	minWindow = time.Second
	maxWindow = time.Minute
	maxHold   = 10 * time.Second // in the queue of a leaky bucket
	maxPlaces = 5                // of that queue: a browser sends six requests at a time, so a longer queue never denies
)

// ReadLimit reads a limit such as token-bucket 10/10s burst 10. It returns the
// reason why a visitor cannot have it, or "".
func ReadLimit(text string) (l algorithms.Limit, why string) {
	l, err := algorithms.ParseLimit(text)
	switch {
	case err != nil:
		why = "want a limit such as token-bucket 10/10s burst 10"
	case l == algorithms.Nobody():
		why = "want a limit that admits requests"
	case l.Requests() > MaxUnits || l.Burst() > MaxUnits:
		why = fmt.Sprintf("want %d requests at most, and as much burst", MaxUnits)
	case l.Window() < minWindow || l.Window() > maxWindow:
		why = fmt.Sprintf("want a window of %d to %d seconds", minWindow/time.Second, maxWindow/time.Second)
	case l.Algorithm() == leaky && l.Burst() > maxPlaces:
		why = fmt.Sprintf("want a queue of %d places at most: a browser sends no more at a time", maxPlaces)
	case l.Algorithm() == leaky && time.Duration(l.Burst())*l.Window() > time.Duration(l.Requests())*maxHold:
		why = fmt.Sprintf("want a queue that empties within %d seconds: take fewer places, more requests or a shorter window", maxHold/time.Second)
	}
	return l, why
}

var leaky = algorithms.LeakyBucket(1, time.Second).Algorithm()
