// Command mutants breaks the code that decides, one small change at a time, and
// counts how many of the changes the tests notice.
//
// It copies the product, and draws changes at random. On each change it first runs the tests that
// take seconds. If the change survives these, it runs the others, too. It prints
// the share of the killed changes with its 95 % interval. The file equivalents.txt
// lists changes that cannot alter any answer, with the reason. They do not count.
// A run takes hours, and needs everything that the tests need.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/penstock-go/penstock/internal/lab/command"
	"github.com/penstock-go/penstock/internal/lab/nottest"
)

// A part is the code of one layer.
type part struct {
	name  string
	globs []string
	tests [][]string // arguments of go test, the fastest first
}

var (
	testSteps  = []string{"./algorithms/internal/step", "./algorithms", "./algorithms/internal/tests", "./lua"}
	testTwins  = []string{"-run", "TestRedisConforms|TestRedisAnswersAsMemory|TestLargeLog|TokenBucket", "./algorithms/shared"}
	testShared = []string{"-short", "-parallel", "8", "./algorithms/shared"}
	testAll    = []string{"./algorithms/shared", "./middleware", "./middleware/internal/tests"}
)

var parts = []part{
	{"step", []string{"algorithms/internal/step/*.go"}, [][]string{testSteps, testTwins, testAll}},
	{"memory", []string{"algorithms/memory*.go"}, [][]string{testSteps, testAll}},
	{"lua", []string{"lua/*.lua"}, [][]string{testTwins, testAll}},
	{"redis", []string{"algorithms/shared/redis_slots.go", "algorithms/shared/redis_key.go", "algorithms/shared/internal/batch/*.go"},
		[][]string{testTwins, testShared, testAll}},
	{"fallback", []string{"algorithms/shared/fallback*.go", "algorithms/shared/internal/circuit/*.go"}, [][]string{{"-run", "Fallback|Spent|Ledger|Circuit|Seen", "./algorithms/shared", "./algorithms/shared/internal/circuit"}, testShared, testAll}},
	{"views", []string{"algorithms/shared/views.go", "algorithms/shared/views_table.go"}, [][]string{{"-run", "Den", "./algorithms/shared"}, testShared, testAll}},
}

func main() {
	seed := flag.Uint64("seed", 1, "`seed` of the random draw")
	count := flag.Int("n", 200, "draw this `number` of mutants")
	from := flag.Int("from", 0, "begin with the mutant of this `number`, to continue an earlier run")
	past := flag.Bool("past", false, "put back bugs of the past, which the simulated fleet must find")
	flag.Parse()
	command.Main("mutants", func(ctx context.Context) error {
		return nottest.Run(func(o *nottest.Owner) {
			d := newDuplicate(ctx, o)
			if *past {
				nottest.Check(d.putBack(ctx))
			} else {
				nottest.Check(d.count(ctx, rand.New(rand.NewPCG(*seed, 0)), *count, *from))
			}
		})
	})
}

// count tries mutants that it draws at random, and prints the share of those that the tests notice.
func (d *duplicate) count(ctx context.Context, r *rand.Rand, n, from int) error {
	drawn, err := points(d.root)
	if err != nil {
		return err
	}
	r.Shuffle(len(drawn), func(a, b int) { drawn[a], drawn[b] = drawn[b], drawn[a] })
	known, outcomes := readEquivalents(), make(map[string]int)
	for i := from; i < min(n, len(drawn)); i++ {
		m := drawn[i]
		outcome, text := outcomeEquivalent, known[m.String()]
		if text == "" {
			if outcome, text, err = d.try(ctx, m); err != nil {
				break
			}
		}
		outcomes[outcome]++
		fmt.Printf("%3d %-10s %s\n    %s %s\n", i, m.part.name, m, outcome, text)
	}
	killed, all := outcomes[outcomeKilled], outcomes[outcomeKilled]+outcomes[outcomeSurvived]
	low, high := wilson(killed, all)
	fmt.Printf("\nkilled %d of %d: %.1f %% (95 %% interval: %.1f to %.1f %%); %d equivalent, %d do not compile\n",
		killed, all, 100*float64(killed)/float64(max(1, all)), 100*low, 100*high, outcomes[outcomeEquivalent], outcomes[outcomeInvalid])
	return err
}

// wilson returns the 95 % interval of a share p = hits/n (E. B. Wilson, "Probable
// inference, the law of succession, and statistical inference", 1927). It holds the
// true shares q that are at most 1.96 standard deviations sqrt(q (1-q) / n) away
// from p; its ends solve the quadratic equation. For example, 190 of 200 give
// 0.910 to 0.973.
func wilson(hits, n int) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	const z = 1.96
	p, m := float64(hits)/float64(n), float64(n)
	middle := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return middle - half, middle + half
}
