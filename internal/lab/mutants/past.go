// Bugs of the past, of penstock and of other limiters, which the simulated fleet must
// find.

package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/penstock-go/penstock/internal/lab/nottest"
)

// A bug is an edit that puts back what an earlier version did, in the terms of today's
// code.
type bug struct {
	story     string
	files     string // a glob
	text, put string // the text occurs once in all files
}

const (
	inShared = "algorithms/shared/*.go"
	inBatch  = "algorithms/shared/internal/batch/*.go"
	inSteps  = "algorithms/internal/step/*.go"
)

var pastBugs = []bug{
	{
		"the client sends a command again whose reply was lost",
		inBatch, "NoRetry() bool { return true }", "NoRetry() bool { return false }",
	},
	{
		"a batch whose deadline has passed unsent is written when the client is connected",
		inBatch, "if n.batch.send() {", "if n.batch.send() || true {",
	},
	{
		"the callers of a batch wait for as long as the client does",
		inBatch, "\tb.timer.Reset(t.Deadline)\n", "",
	},
	{
		"after Redis has lost its scripts, the digest is sent again and not the source",
		inBatch, `name, text = "eval", scriptSource`, `name, text = "evalsha", scriptDigest`,
	},
	{
		"units that Redis has perhaps charged are handed back",
		inShared, "case it.unknown:", "case it.unknown && it.Cost > 1_000:",
	},
	{
		"units that a Return has credited are handed back all the same",
		inShared, "\t\t\tf.ledger.unrecord(it, now)\n", "\t\t\t_ = now\n",
	},
	{
		"a hand-back without a reply is sent again",
		inShared, "\t\tl.lost.Add(uint64(units))\n", "\t\td.rest = nil\n\t\treturn\n",
	},
	{
		"a hand-back that Redis has refused is forgotten",
		inShared, "\t\td.rest, d.after = nil, refusedUntil(err)\n\t\treturn\n", "",
	},
	{
		"a hand-back ends as soon as one key owes nothing any more",
		inShared, "\t\tif units == 0 {\n", "\t\tif units == 0 || len(due) > 0 {\n",
	},
	{
		"the pauses between probes double up to half a minute",
		"algorithms/shared/internal/circuit/*.go", "p := min(FirstPause<<min(n, 2), SteadyPause)", "p := min(FirstPause<<min(n, 7), 30*SteadyPause)",
	},
	{
		"an instance that starts in an outage takes the whole limit for its share",
		inShared, "f.instances.Store(int64(max(1, o.Instances)))", "f.instances.Store(1)",
	},
	{
		"the share of a slow rate is rounded",
		inSteps, "r, w := l.R*num, l.W*den\n", "r, w := max(1, l.R*num/den), l.W\n",
	},
	{
		"a call that times out is an error of the request",
		inShared, "\treturn ctx.Err()\n", "\tif errors.Is(err, context.DeadlineExceeded) {\n\t\treturn err\n\t}\n\treturn ctx.Err()\n",
	},
}

// fleet finds the bugs.
var fleet = part{name: "fleet", tests: [][]string{{"-count=1", "-run", "^TestFleet$", "./algorithms/internal/fleet"}}}

// mutant returns the bug as a change of the product.
func (b *bug) mutant(root string) (mutant, error) {
	var found mutant
	times := 0
	for name, source := range sources(root, b.files) {
		if n := strings.Count(source, b.text); n > 0 {
			from := strings.Index(source, b.text)
			found = mutant{part: &fleet, file: name, from: from, to: from + len(b.text), text: b.put}
			times += n
		}
	}
	if times != 1 {
		return found, fmt.Errorf("%s: %q occurs %d times, want once: %s", b.files, b.text, times, b.story)
	}
	return found, nil
}

var broken = regexp.MustCompile(`_test\.go:\d+: ([^:\n]+): \d+ times`)

// putBack tries the bugs of the past. It returns an error if the fleet has missed one.
func (d *duplicate) putBack(ctx context.Context) error {
	nottest.Check(os.Setenv("PENSTOCK_SEEDS", "0-47"))
	missed := 0
	for i := range pastBugs {
		m := nottest.Must(pastBugs[i].mutant(d.root))
		outcome, killer, err := d.try(ctx, m)
		if err != nil {
			return err
		}
		if outcome != outcomeKilled {
			missed++
		}
		fmt.Printf("%2d %s: %s %s\n", i+1, pastBugs[i].story, outcome, killer)
	}
	if missed > 0 {
		return fmt.Errorf("the fleet has missed %d of %d bugs of the past", missed, len(pastBugs))
	}
	return nil
}
