package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/penstock-go/penstock/internal/lab/nottest"
	"github.com/penstock-go/penstock/internal/lab/peers/repro"
)

// A cell is what a library does about a promise.
type cell struct {
	library library
	promise promise
	verdict
	printed string // by the function of package repro that confirms a red cell
}

// reproduction is the name in package repro.
func (c cell) reproduction() string { return c.library.slug + "-" + c.promise.name }

// contestants are all that is tried.
var contestants = slices.Concat(libraries, articleScripts)

// judge tries all of them at once, one promise after the other.
func judge(ctx context.Context, only *regexp.Regexp) []cell {
	var cells []cell
	for _, p := range promises {
		for _, l := range contestants {
			if p.concerns(l) && only.MatchString(l.name+"/"+l.store+"/"+p.name) {
				cells = append(cells, cell{library: l, promise: p})
			}
		}
	}
	var all sync.WaitGroup
	for i := range cells {
		c := &cells[i]
		if i > 0 && c.promise.name != cells[i-1].promise.name {
			all.Wait()
		}
		if ctx.Err() == nil {
			all.Go(func() { c.try(ctx) })
		}
	}
	all.Wait()
	for i := range cells {
		cells[i].reproduce(ctx)
	}
	return cells
}

// try runs the trial of a cell.
func (c *cell) try(ctx context.Context) {
	makes := c.library.makes(c.promise.name)
	if !makes && !slices.Contains(c.library.shown, c.promise.name) {
		c.verdict = verdict{Colour: grey}
		return
	}
	var err error
	if c.promise.alone {
		var out []byte
		if out, err = child(ctx, "trial", c.library.slug, c.promise.name); err == nil {
			err = json.Unmarshal(out, &c.verdict)
		}
	} else {
		c.verdict, err = attempt(c.library, c.promise)
	}
	switch {
	case err != nil:
		c.verdict = verdict{failed, fmt.Sprint(err)}
	case !makes:
		c.Colour = grey
	}
}

func attempt(l library, p promise) (v verdict, err error) {
	err = nottest.Run(func(owner *nottest.Owner) { v = p.keep(&trial{Owner: owner, library: l}) })
	return v, err
}

// reproduce confirms a red cell with its function in package repro. A cell that is not confirmed is tried again, because a
// busy machine is no library's fault. If it stays red it is an error: nothing is called broken that only one program has seen.
func (c *cell) reproduce(ctx context.Context) {
	for tries := 0; c.Colour == red; tries++ {
		out, err := child(ctx, "repro", c.reproduction())
		if c.printed = string(bytes.TrimSpace(out)); confirms(err) {
			return
		}
		if tries == 4 {
			c.verdict = verdict{failed, fmt.Sprintf("%s, and repro %s does not confirm it: %v %s", c.What, c.reproduction(), err, c.printed)}
			return
		}
		c.try(ctx)
	}
}

// confirms reports whether a reproduction has seen what it looks for.
func confirms(err error) bool {
	exit := new(exec.ExitError)
	return errors.As(err, &exit) && exit.ExitCode() == 1
}

// child runs this program again, with a steppable clock, and returns what it prints.
func child(ctx context.Context, args ...string) ([]byte, error) {
	program, err := steppable()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	var trouble bytes.Buffer
	c := exec.CommandContext(ctx, program, append([]string{"-child"}, args...)...)
	c.Stderr = &trouble
	out, err := c.Output()
	if err != nil {
		err = fmt.Errorf("%v: %w: %s", args, err, trouble.Bytes())
	}
	return out, err
}

// runChild is what the child does: a trial, or a reproduction. It returns the exit code.
func runChild(args []string) int {
	if args[0] == "repro" {
		repro.SetStep = setStep
		line, broken, err := repro.Run(args[1])
		if fmt.Println(line); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
		if broken {
			return 1
		}
		return 0
	}
	l := slices.IndexFunc(contestants, func(l library) bool { return l.slug == args[1] })
	p := slices.IndexFunc(promises, func(p promise) bool { return p.name == args[2] })
	v, err := attempt(contestants[l], promises[p])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(v)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	return 0
}
