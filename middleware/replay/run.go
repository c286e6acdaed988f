// One run.

package replay

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"strings"

	"github.com/penstock-go/penstock/algorithms"
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
	given := Options{}
	if o != nil {
		given = *o
	}
	if given.Stdin == nil {
		given.Stdin = os.Stdin
	}
	if given.Stdout == nil {
		given.Stdout = os.Stdout
	}
	if given.Stderr == nil {
		given.Stderr = os.Stderr
	}
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
	p := &replay{engine: newEngine(o.Tiers), goals: o.targets(), progress: o.Stderr}
	p.history = p.engine.limiter.history
	p.report = report{Goals: p.goals, Refused: make(map[int]int), Logged: make(map[int]int)}
	service, err := handler(p.engine.limiter)
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
	defer debug.SetGCPercent(debug.SetGCPercent(garbagePercent(0)))

	if err := in.each(ctx, p.decide); err != nil {
		return nil, err
	}
	p.countLines(in)
	if in.lines == 0 {
		return nil, fmt.Errorf("%s: no lines", strings.Join(o.Files, ", "))
	}
	if p.report.Requests == 0 {
		return nil, fmt.Errorf("%s: no line of %d is a request: %s", strings.Join(o.Files, ", "), in.lines, strings.Join(in.shown, "; "))
	}
	return &p.report, p.conclude(ctx)
}

// countLines reports what the log and the handler made of the lines.
func (p *replay) countLines(in *log) {
	r := &p.report
	r.Lines, r.Late, r.BadShown, r.Cut = in.lines, in.late, in.shown, in.unfinished
	r.Median, r.Longest = p.took.median().Seconds(), p.took.longest.Seconds()
	r.Bad += in.bad
	r.Unrouted, r.Unknown, r.Unmet = p.engine.strays, p.engine.unknown, p.engine.unmet()
}
