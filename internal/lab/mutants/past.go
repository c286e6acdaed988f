// Bugs of the past, of penstock and of other limiters, which the simulated fleet must
// find.

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/penstock-go/penstock/internal/lab/product"
)

// A bug is an edit that puts back what an earlier version did, in the terms of today's
// code.
type bug struct {
	story     string
	file      string
	text, put string // the text occurs once in the file
}

var pastBugs = []bug{
	{
		"the client sends a command again whose reply was lost",
		"algorithms/shared/batch_send.go", "NoRetry() bool { return true }", "NoRetry() bool { return false }",
	},
	{
		"a batch whose deadline has passed unsent is written when the client is connected",
		"algorithms/shared/batch_send.go", "if n.batch.send() {", "if n.batch.send() || true {",
	},
	{
		"the callers of a batch wait for as long as the client does",
		"algorithms/shared/batch_send.go", "\tb.timer.Reset(r.deadline)\n", "",
	},
	{
		"after Redis has lost its scripts, the digest is sent again and not the source",
		"algorithms/shared/batch_send.go", `			name = "eval"`, `			name = "evalsha"`,
	},
	{
		"units that Redis has perhaps charged are handed back",
		"algorithms/shared/fallback_local.go", "case it.perhaps:", "case it.perhaps && it.Cost > 1_000:",
	},
	{
		"units that a Return has credited are handed back all the same",
		"algorithms/shared/fallback_local.go", "\t\t\tf.owed.unrecord(it, now)\n", "\t\t\t_ = now\n",
	},
	{
		"a hand-back without a reply is sent again",
		"algorithms/shared/fallback_tend.go", "\t\t\tf.stats.lost.Add(uint64(units))\n", "\t\t\tf.owed.restore(d, f.now(), handBackEvery)\n",
	},
	{
		"a hand-back that Redis has refused is forgotten",
		"algorithms/shared/fallback_tend.go", "\t\t\tf.owed.restore(d, f.now(), bypassedFor)\n", "",
	},
	{
		"a hand-back ends as soon as one key owes nothing any more",
		"algorithms/shared/fallback_ledger.go", "\t\tif d.bringTo(now) > 0 {\n", "\t\tif len(debts) == 0 && d.bringTo(now) > 0 {\n",
	},
	{
		"the pauses between probes double up to half a minute",
		"algorithms/shared/fallback_circuit.go", "p := min(firstPause<<min(n, 2), steadyPause)", "p := min(firstPause<<min(n, 7), 30*steadyPause)",
	},
	{
		"an instance that starts in an outage takes the whole limit for its share",
		"algorithms/shared/fallback.go", "f.instances.Store(int64(max(1, o.Instances)))", "f.instances.Store(1)",
	},
	{
		"the share of a slow rate is rounded",
		"algorithms/internal/step/share.go", "r, w := l.R*num, l.W*den\n", "r, w := max(1, l.R*num/den), l.W\n",
	},
	{
		"a call that times out is an error of the request",
		"algorithms/shared/fallback.go", "\treturn ctx.Err()\n", "\tif errors.Is(err, errTimeout) {\n\t\treturn err\n\t}\n\treturn ctx.Err()\n",
	},
}

// fleet finds the bugs.
var fleet = part{name: "fleet", tests: [][]string{{"-count=1", "-run", "^TestFleet$", "./algorithms/internal/fleet"}}}

// mutant returns the bug as a change of the product.
func (b *bug) mutant(root string) (mutant, error) {
	source, err := os.ReadFile(filepath.Join(root, b.file))
	if err != nil {
		return mutant{}, err
	}
	from := strings.Index(string(source), b.text)
	if n := strings.Count(string(source), b.text); n != 1 {
		return mutant{}, fmt.Errorf("%s: %q occurs %d times, want once: %s", b.file, b.text, n, b.story)
	}
	return mutant{part: &fleet, file: b.file, from: from, to: from + len(b.text), text: b.put}, nil
}

var broken = regexp.MustCompile(`_test\.go:\d+: ([^:\n]+): \d+ times`)

// putBack tries the bugs of the past. It returns an error if the fleet has missed one.
func putBack(ctx context.Context) error {
	root, err := product.Dir(ctx)
	if err != nil {
		return err
	}
	d, err := newDuplicate(ctx, root)
	if err != nil {
		return err
	}
	defer d.close()
	if err := os.Setenv("PENSTOCK_SEEDS", "0-47"); err != nil {
		return err
	}
	missed := 0
	for i := range pastBugs {
		m, err := pastBugs[i].mutant(root)
		if err != nil {
			return err
		}
		outcome, err := d.try(ctx, m)
		if err != nil {
			return err
		}
		if !strings.HasPrefix(outcome, outcomeKilled) {
			missed++
		}
		fmt.Printf("%2d %s: %s\n", i+1, pastBugs[i].story, outcome)
	}
	if missed > 0 {
		return fmt.Errorf("the fleet has missed %d of %d bugs of the past", missed, len(pastBugs))
	}
	return nil
}
