// One run.

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
	p.history = p.engine.limiter.history
	p.report = report{Goals: o.targets(), Refused: make(map[int]int), Logged: make(map[int]int)}
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
