package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
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

// contestants are all that is tried.
var contestants = slices.Concat(libraries, articleScripts)

// judge tries all of them at once, one promise after the other. Both promises about an outage are tried at once,
// because their trials mostly wait.
func judge(ctx context.Context, only *regexp.Regexp) []cell {
	table := make([][]cell, len(promises))
	var all sync.WaitGroup
	for i, p := range promises {
		if p.name != "outage-limit" {
			all.Wait()
		}
		table[i] = make([]cell, len(contestants))
		for j, l := range contestants {
			if p.concerns(l) && only.MatchString(l.name+"/"+l.store+"/"+p.name) && ctx.Err() == nil {
				all.Go(func() { table[i][j] = try(l, p) })
			}
		}
	}
	all.Wait()
	return slices.DeleteFunc(slices.Concat(table...), func(c cell) bool { return c.promise.name == "" })
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
