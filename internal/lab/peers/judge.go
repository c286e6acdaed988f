package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/penstock-go/penstock/internal/lab/nottest"
)

// A cell is what a library does about a promise.
type cell struct {
	library library
	promise promise
	verdict
	printed string // by the program that confirms a red cell
	err     error  // the trial itself failed
}

// judge tries all libraries at once, one promise after the other.
func judge(ctx context.Context, only string) []cell {
	var cells []cell
	for _, p := range promises {
		row := make([]cell, len(libraries))
		var all sync.WaitGroup
		for i, l := range libraries {
			if !strings.Contains(l.name+"/"+l.store+"/"+p.name, only) || ctx.Err() != nil {
				continue
			}
			all.Go(func() { row[i] = try(l, p) })
		}
		all.Wait()
		for _, c := range row {
			if c.promise.name != "" {
				cells = append(cells, c)
			}
		}
	}
	return cells
}

// try runs one trial.
func try(l library, p promise) cell {
	c := cell{library: l, promise: p}
	absent := slices.Contains(l.absent, p.name)
	if absent && !slices.Contains(l.shown, p.name) {
		c.colour = grey
		return c
	}
	owner := nottest.NewOwner()
	defer owner.Close()
	failed := owner.Do(func() { c.verdict, c.err = p.keep(&trial{library: l, owner: owner}) })
	if failed != nil {
		c.err = failed
	}
	if c.err != nil {
		c.verdict = verdict{"error", fmt.Sprint(c.err)}
	} else if absent {
		c.colour = grey
	}
	return c
}
