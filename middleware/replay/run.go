// One run.

package replay

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"strings"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
)

// Run replays access logs through a handler, and writes the report to o.Stdout. Call it
// instead of serving.
//
// handler is the function that builds the handler of your service, with Middlewares that
// limit by the given limiter. The package comment says which handlers Run accepts, and what
// runs of them. Run calls handler once. It may be nil if o names files of policies and routes.
//
// The error reports every misconfiguration of o, the handler's error, or every bad file,
// policy and route. Run ends early with the error of ctx. If the chart cannot be written,
// Run still writes the report. Bad lines are no error: the report counts them. A log
// without any request is an error.
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
	var failed error // of the chart, which does not cost the report
	if o.SVG != "" {
		failed = os.WriteFile(o.SVG, r.svg(), 0o644)
	}
	out := bufio.NewWriter(o.Stdout)
	if o.Format == "json" {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		err = e.Encode(r)
	} else {
		r.write(out)
	}
	return errors.Join(err, out.Flush(), failed)
}

// replay returns the report.
func (o *Options) replay(ctx context.Context, handler func(algorithms.Limiter) (http.Handler, error)) (r *report, err error) {
	err = o.validate(handler != nil)
	tiers, errTiers := o.tiers()
	if err := errors.Join(err, errTiers); err != nil {
		return nil, err
	}
	p := &replay{engine: newEngine(tiers), goals: o.targets()}
	p.history = p.engine.limiter.history
	p.report = report{Goals: p.goals, Refused: make(map[int]int), Logged: make(map[int]int)}
	if err := p.engine.build(o, handler); err != nil {
		return nil, err
	}
	in, err := openLog(o.Files, o.Stdin)
	if err != nil {
		return nil, err
	}
	defer in.close()
	if p.spool, err = newSpool(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.spool.close()) }()
	defer debug.SetGCPercent(debug.SetGCPercent(garbagePercent(0)))

	progress := begin(o.Stderr)
	defer progress.end()
	progress.show(in.progress)
	if err := in.each(ctx, p.decide); err != nil {
		return nil, err
	}
	progress.show(p.history.progress)
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
	r.Lines, r.Late, r.BadShown = in.lines, in.late, in.shown
	r.Bad += in.bad
	r.Unrouted, r.Unknown, r.Unmet = p.engine.strays, p.engine.unknown, p.engine.unmet()
}

// build gives the engine its handler.
func (e *engine) build(o *Options, handler func(algorithms.Limiter) (http.Handler, error)) error {
	var service http.Handler
	if handler != nil {
		var err error
		if service, err = handler(e.limiter); err != nil {
			return err
		}
	}
	if o.PoliciesFile == "" {
		return e.serve(service)
	}
	clear(e.policies)
	routes, err := o.routes(service)
	if err != nil {
		return err
	}
	all, policies, err := readPolicies(o.PoliciesFile, routes)
	if err != nil {
		return err
	}
	e.handler, err = e.mount(routes, all, policies, &ratelimit.Options{Logger: slog.New(slog.DiscardHandler)})
	return err
}
