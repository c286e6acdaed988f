// One run: read, decide, try, report.

package replay

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

// Run replays access logs through a handler, and writes the report to o.Stdout. Call it
// instead of serving.
//
// handler is the function that builds the handler of your service, with Middlewares that
// limit by the given limiter. The package comment says which handlers Run accepts, and what
// runs of them. Run calls handler once. It must not be nil.
//
// The error reports every misconfiguration of o, or the handler's error. Run ends early with
// the error of ctx. Bad lines are no error: the report counts them. A log without any request
// is an error.
//
// Call Run from one goroutine at a time.
func Run(ctx context.Context, handler func(algorithms.Limiter) (http.Handler, error), o *Options) error {
	given := *cmp.Or(o, &Options{})
	given.Stdin = cmp.Or[io.Reader](given.Stdin, os.Stdin)
	given.Stdout = cmp.Or[io.Writer](given.Stdout, os.Stdout)
	given.Stderr = cmp.Or[io.Writer](given.Stderr, os.Stderr)
	if err := given.run(ctx, handler); err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	return nil
}

func (o *Options) run(ctx context.Context, handler func(algorithms.Limiter) (http.Handler, error)) error {
	r, err := o.replay(ctx, handler)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(o.Stdout)
	switch o.Format {
	case "json":
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		err = e.Encode(r)
	case "html":
		err = r.writePage(out)
	default:
		r.write(out)
	}
	return errors.Join(err, out.Flush())
}

// replay returns the report.
func (o *Options) replay(ctx context.Context, handler func(algorithms.Limiter) (http.Handler, error)) (r *report, err error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	p := &replay{engine: newEngine(o.Tiers), progress: o.Stderr}
	p.history = p.engine.history
	p.report = report{Goals: o.targets(), Refused: make(map[int]int), Logged: make(map[int]int)}
	service, err := handler(p.engine)
	if err != nil {
		return nil, err
	}
	if err := p.engine.serve(service); err != nil {
		return nil, err
	}
	in, err := openLog(o.Files, o.Stdin, units[o.DurationUnit])
	if err != nil {
		return nil, err
	}
	defer in.close()
	if p.spool, err = newSpool(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.spool.close()) }()

	if err := in.each(ctx, p.decide); err != nil {
		return nil, err
	}
	r = &p.report
	r.lines = in.lines
	r.Median, r.Longest = p.took.median().Seconds(), p.took.longest.Seconds()
	r.Unrouted, r.Unknown, r.Unmet = p.engine.strays, p.engine.unknown, p.engine.unmet()
	if in.All == 0 {
		return nil, fmt.Errorf("%s: no lines", strings.Join(o.Files, ", "))
	}
	if r.Requests == 0 {
		return nil, fmt.Errorf("%s: no line of %d is a request: %s", strings.Join(o.Files, ", "), in.All, strings.Join(in.BadShown, "; "))
	}
	return r, p.conclude(ctx)
}

// A replay is one run over a log.
type replay struct {
	engine   *engine
	history  *history
	spool    *spool
	report   report
	took     durations
	progress io.Writer
}

const fewDenied = 0.05 // of clients: where a curve begins

// decide serves lines by the engine.
func (p *replay) decide(lines []*entry) error {
	for _, l := range lines {
		v := p.engine.decide(l)
		p.count(l, &v)
		if p.report.Requests%1_000_000 == 0 {
			fmt.Fprintf(p.progress, "%s requests, up to %s UTC\n", thousands(p.report.Requests), p.report.End.Format(time.DateTime))
		}
		if err := p.keep(l); err != nil {
			return err
		}
	}
	return nil
}

// count counts a request and its verdict.
func (p *replay) count(l *entry, v *ratelimit.Verdict) {
	r := &p.report
	if r.Requests == 0 {
		r.Start, r.WholeSeconds = time.UnixMicro(l.Time).UTC(), true
	}
	r.Requests++
	if l.Timed {
		p.took.add(l.Duration)
	}
	r.End = time.UnixMicro(p.engine.now).UTC()
	r.WholeSeconds = r.WholeSeconds && l.Time%micros == 0
	if len(v.Policies) == 0 && v.Allowed {
		r.Unlimited++
	}
	if v.Status != 0 {
		r.Refused[v.Status]++
	}
	if refusal(l.Status) {
		r.Logged[l.Status]++
	}
	if l.Status != 0 && l.Status != v.Status && (refusal(l.Status) || refusal(v.Status)) {
		r.Differ++
	}
}

// refusal reports whether a status may be a denial.
func refusal(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// keep spools the checks of a request. Concurrent limits have no trials.
func (p *replay) keep(l *entry) error {
	for i := range p.engine.asked {
		a := &p.engine.asked[i]
		k := p.history.keys[a.key]
		s := p.history.series[k.series]
		cost := min(a.check.Cost, maxUnits)
		settled := min(l.settled(a.policy, cost), maxUnits-cost)
		s.want(k, p.engine.now, cost+max(0, settled))
		if !s.searchable() {
			continue
		}
		err := p.spool.add(record{time: p.engine.now, key: a.key, units: cost})
		if settled != 0 && err == nil {
			s.settles = true
			err = p.spool.add(record{time: p.engine.now, key: a.key, units: settled, settles: true})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// settled returns the units that a line tells were charged after its decision by a
// policy, or returned if they are negative.
func (l *entry) settled(p *ratelimit.Policy, cost int64) (units int64) {
	switch {
	case p.ChargeIf != nil && l.Status != 0:
		if !p.ChargeIf(l.Status) {
			return -cost
		}
	case p.Cost == nil:
	case l.Settled != nil:
		for _, s := range l.Settled {
			if s.Policy == p.Name {
				units += s.Units
			}
		}
	case l.Cost >= 0:
		units = l.Cost - cost
	}
	return max(units, -cost)
}

// conclude tries other limits, and completes the report.
func (p *replay) conclude(ctx context.Context) error {
	p.engine.memory = nil // trials need the room
	if err := p.spool.out.Flush(); err != nil {
		return err
	}
	found := p.history.begin([goals]float64{fewDenied, p.report.Goals.Clients, 0})
	if err := p.history.search(ctx, p.spool, found); err != nil {
		return err
	}
	curve, proposed := p.history.curve(found), p.proposals(found)
	if err := p.history.run(ctx, p.spool, append(curve, proposed)...); err != nil {
		return err
	}
	for i, s := range p.history.series {
		r := p.describe(i, s)
		for _, t := range curve {
			if t.limits[i] != (algorithms.Limit{}) {
				r.Curve = append(r.Curve, pointOf(t, i, s))
			}
		}
		p.answer(&r, i, found[i], proposed)
		p.report.Policies = append(p.report.Policies, r)
	}
	slices.SortStableFunc(p.report.Policies, func(a, b policyReport) int {
		return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(b.Results[0].Requests, a.Results[0].Requests), cmp.Compare(a.Route, b.Route), cmp.Compare(a.Limit, b.Limit))
	})
	return nil
}
