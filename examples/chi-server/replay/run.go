// The command: its flags, and one run of it.

package replay

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/penstock-go/penstock/middleware"
)

// Options are the flags of a replay.
type Options struct {
	Files    []string // "-" is the standard input
	Policies string   // a JSON file; "": the policies of the router
	Routes   string   // a file of templates; "": the routes of the router
	Plans    string   // a file of users and their plans
	Format   string   // text or json
	SVG      string   // a file to write
	Goals    Goals
}

// Flags defines the flags of a replay, except the flag of its files.
func Flags(flags *flag.FlagSet) *Options {
	o := &Options{}
	flags.StringVar(&o.Policies, "policies", "", "replay the policies of this JSON `file`, instead of the program's")
	flags.StringVar(&o.Routes, "routes", "", "use the routes of this `file`, with one \"METHOD /path/{id}\" on each line, instead of the program's; requires -policies")
	flags.StringVar(&o.Plans, "plans", "", "read plans from this `file`, with one \"USER PLAN\" on each line")
	flags.StringVar(&o.Format, "format", "text", "write the report in this `format`: text or json")
	flags.StringVar(&o.SVG, "svg", "", "write a chart of traffic, limits and denials to this `file`")
	flags.Float64Var(&o.Goals.Requests, "deny-requests", 1, "find the smallest limit that denies at most this `per-cent` of requests")
	flags.Float64Var(&o.Goals.Clients, "deny-clients", 1, "find and propose the smallest limit that denies at most this `per-cent` of clients")
	flags.Float64Var(&o.Goals.Headroom, "headroom", 20, "add this `per-cent` to a proposal")
	return o
}

// Validate reports every mistake of the flags, and turns per cent into shares.
func (o *Options) Validate() error {
	var errs []error
	if o.Format != "text" && o.Format != "json" {
		errs = append(errs, fmt.Errorf("-format %q: want text or json", o.Format))
	}
	if o.Routes != "" && o.Policies == "" {
		errs = append(errs, errors.New("-routes requires -policies"))
	}
	for _, f := range []struct {
		name  string
		value *float64
		most  float64
	}{{"-deny-requests", &o.Goals.Requests, 100}, {"-deny-clients", &o.Goals.Clients, 100}, {"-headroom", &o.Goals.Headroom, 1000}} {
		if !(*f.value >= 0 && *f.value <= f.most) {
			errs = append(errs, fmt.Errorf("%s %v: want 0 to %v", f.name, *f.value, f.most))
		}
		*f.value /= 100
	}
	return errors.Join(errs...)
}

// A Service is the program whose limits are replayed.
type Service struct {
	// Router returns the service's router. Its middlewares limit with e.Limiter, and
	// wrap handlers by e.Check.
	Router func(e *Engine) (chi.Router, error)
	// Wrap changes requests before the router sees them; nil changes nothing.
	Wrap func(http.Handler) http.Handler
	// Plans are the plans of users, unless Options.Plans names a file.
	Plans map[string]string
}

// Run replays the files of o, and writes the report to stdout. Errors name every bad
// file, policy and route. Progress goes to stderr.
func Run(ctx context.Context, o *Options, s Service, stdin io.Reader, stdout, stderr io.Writer) error {
	r, err := replayAll(ctx, o, s, stdin, stderr)
	if err != nil {
		return err
	}
	var failed error // of the chart, which does not cost the report
	if o.SVG != "" {
		if err := os.WriteFile(o.SVG, r.svg(), 0o644); err != nil {
			failed = fmt.Errorf("-svg: %w", err)
		}
	}
	out := bufio.NewWriter(stdout)
	if o.Format == "json" {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		err = e.Encode(r)
	} else {
		r.write(out)
	}
	return errors.Join(err, out.Flush(), failed)
}

func replayAll(ctx context.Context, o *Options, s Service, stdin io.Reader, stderr io.Writer) (r *Report, err error) {
	plans, err := o.plans(s.Plans)
	if err != nil {
		return nil, err
	}
	p := &replay{engine: NewEngine(plans), goals: o.Goals}
	p.history = p.engine.limiter.history
	p.report = Report{Goals: o.Goals, Refused: make(map[int]int), Logged: make(map[int]int)}
	if err := p.route(o, s); err != nil {
		return nil, err
	}
	in, err := openLog(o.Files, stdin)
	if err != nil {
		return nil, err
	}
	defer in.close()
	if p.spool, err = newSpool(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.spool.close()) }()
	defer debug.SetGCPercent(debug.SetGCPercent(garbagePercent(0)))

	progress := begin(stderr)
	defer progress.end()
	progress.show(in.progress)
	if err := in.each(ctx, p.decide); err != nil {
		return nil, err
	}
	progress.show(p.history.progress)
	p.report.Lines, p.report.Late, p.report.BadShown = in.lines, in.late, in.shown
	p.report.Bad += in.bad
	p.report.Unrouted, p.report.Unknown = p.engine.strays, p.engine.unknown
	if in.lines == 0 {
		return nil, fmt.Errorf("%s: no lines", strings.Join(o.Files, ", "))
	}
	if p.report.Requests == 0 {
		return nil, fmt.Errorf("%s: no line of %d is a request: %s", strings.Join(o.Files, ", "), in.lines, strings.Join(in.shown, "; "))
	}
	return &p.report, p.conclude(ctx)
}

// route gives the engine its handler.
func (p *replay) route(o *Options, s Service) error {
	router, err := s.Router(p.engine)
	if err != nil {
		return err
	}
	h, err := p.engine.Router(router)
	if o.Policies != "" {
		h, err = p.engine.routeFile(o, router)
	}
	if err != nil {
		return err
	}
	if s.Wrap != nil {
		h = s.Wrap(h)
	}
	p.engine.Handle(h)
	return nil
}

// routeFile returns a handler with the policies of a file.
func (e *Engine) routeFile(o *Options, router chi.Router) (http.Handler, error) {
	clear(e.policies)
	routes, err := routesOf(router)
	if o.Routes != "" {
		routes, err = readRoutes(o.Routes)
	}
	if err != nil {
		return nil, err
	}
	all, policies, err := readPolicies(o.Policies, routes)
	if err != nil {
		return nil, err
	}
	return e.mount(routes, all, policies, &ratelimit.Options{Logger: slog.New(slog.DiscardHandler)})
}

// plans reads the file of plans.
func (o *Options) plans(known map[string]string) (map[string]string, error) {
	if o.Plans == "" {
		return known, nil
	}
	text, err := os.ReadFile(o.Plans)
	if err != nil {
		return nil, err
	}
	var errs []error
	plans := make(map[string]string)
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		switch words := strings.Fields(line); {
		case len(words) == 0 || words[0][0] == '#':
		case len(words) != 2:
			errs = append(errs, fmt.Errorf("%s:%d: %q is not USER PLAN", o.Plans, n, strings.TrimSpace(line)))
		default:
			plans[words[0]] = words[1]
		}
	}
	return plans, errors.Join(errs...)
}
