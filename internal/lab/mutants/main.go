// Command mutants breaks the code that decides, one small change at a time, and
// counts how many of the changes the tests notice.
//
// It copies the product, and draws changes at random from each part of the code,
// in proportion to the part's size. On each change it first runs the tests that
// take seconds. If the change survives these, it runs the others, too. It prints
// the share of the killed changes with its 95 % interval. The file equivalents.txt
// lists changes that cannot alter any answer, with the reason. They do not count.
// A run takes hours, and needs everything that the tests need.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"

	"github.com/penstock-go/penstock/internal/lab/product"
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
	workers := flag.Int("p", 2, "run this `number` of mutants at a time")
	list := flag.Bool("list", false, "only list the mutants")
	past := flag.Bool("past", false, "put back bugs of the past, which the simulated fleet must find")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	var err error
	if *past {
		err = putBack(ctx)
	} else {
		err = run(ctx, *seed, *count, *from, *workers, *list)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, seed uint64, count, from, workers int, list bool) error {
	root, err := product.Dir(ctx)
	if err != nil {
		return err
	}
	drawn, err := draw(root, rand.New(rand.NewPCG(seed, 0)), count)
	if err != nil {
		return err
	}
	if list || workers < 1 {
		for i, m := range drawn {
			fmt.Printf("%3d %s\n", i, m)
		}
		return nil
	}
	s := session{drawn: drawn, known: readEquivalents(), next: from}
	errs := make([]error, workers)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = s.work(ctx, root) })
	}
	all.Wait()
	s.tally.print()
	return errors.Join(errs...)
}

// A session is a run of the command with several workers.
type session struct {
	drawn []mutant
	known map[string]string // reasons, by equivalent mutant

	mu    sync.Mutex // guards the fields below
	next  int
	tally tally
}

// work tries mutants in a copy of its own, until none is left.
func (s *session) work(ctx context.Context, root string) error {
	duplicate, err := newDuplicate(ctx, root)
	if err != nil {
		return err
	}
	defer duplicate.close()
	for {
		s.mu.Lock()
		i := s.next
		s.next++
		s.mu.Unlock()
		if i >= len(s.drawn) {
			return nil
		}
		m := s.drawn[i]
		reason, equivalent := s.known[m.String()]
		outcome := "equivalent: " + reason
		if !equivalent {
			if outcome, err = duplicate.try(ctx, m); err != nil {
				return err
			}
		}
		s.mu.Lock()
		s.tally.add(m, outcome, equivalent)
		fmt.Printf("%3d %-10s %s\n    %s\n", i, m.part.name, m, outcome)
		s.mu.Unlock()
	}
}

// draw draws mutants at random. Each part has the same share of them as of all points.
func draw(root string, r *rand.Rand, count int) ([]mutant, error) {
	var points [][]mutant
	all := 0
	for i := range parts {
		found, err := pointsOf(root, &parts[i])
		if err != nil {
			return nil, err
		}
		r.Shuffle(len(found), func(a, b int) { found[a], found[b] = found[b], found[a] })
		points, all = append(points, found), all+len(found)
	}
	var drawn []mutant
	for _, found := range points {
		drawn = append(drawn, found[:min(len(found), (len(found)*count+all/2)/all)]...)
	}
	r.Shuffle(len(drawn), func(a, b int) { drawn[a], drawn[b] = drawn[b], drawn[a] })
	return drawn, nil
}

// A tally counts outcomes.
type tally struct {
	killed, survived, equivalent, invalid int
	survivors                             []string
}

func (t *tally) add(m mutant, outcome string, equivalent bool) {
	switch {
	case equivalent:
		t.equivalent++
	case strings.HasPrefix(outcome, outcomeInvalid):
		t.invalid++
	case strings.HasPrefix(outcome, outcomeKilled):
		t.killed++
	default:
		t.survived++
		t.survivors = append(t.survivors, m.String())
	}
}

func (t *tally) print() {
	n := t.killed + t.survived
	low, high := wilson(t.killed, n)
	fmt.Printf("\nkilled %d of %d: %.1f %% (95 %% interval: %.1f to %.1f %%); %d equivalent, %d do not compile\n",
		t.killed, n, 100*float64(t.killed)/float64(max(1, n)), 100*low, 100*high, t.equivalent, t.invalid)
	slices.Sort(t.survivors)
	for _, s := range t.survivors {
		fmt.Println("survived:", s)
	}
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
