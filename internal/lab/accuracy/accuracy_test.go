package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestPageIsUpToDate(t *testing.T) {
	if read(t, pageFile) != page() {
		t.Errorf("%s is not what make accuracy writes", pageFile)
	}
}

// README tells what 100 per minute means.
func TestReadmeHasTheFigures(t *testing.T) {
	readme := read(t, "../../../README.md")
	most := make(map[string]int64)
	for _, sh := range shapes {
		r := newRun(subjects[0].make(100))
		sh.send(r, 400)
		most[sh.name] = r.most
	}
	for _, want := range []string{fmt.Sprintf("up to %d", most["Poisson"]), fmt.Sprintf("at most %d", most["adversarial"])} {
		line := "`SlidingWindowCounter(100, time.Minute)` | "
		_, row, _ := strings.Cut(readme, line)
		if row, _, _ = strings.Cut(row, "\n"); !strings.Contains(row, want) {
			t.Errorf("README: %s%s, want %q", line, row, want)
		}
	}
}

func TestTheLogIsExact(t *testing.T) {
	for _, sh := range shapes {
		r := newRun(subjects[1].make(20))
		sh.send(r, 100)
		if f := r.figures(); f.most+f.above+f.least+f.below != 0 || f.admitted != 100 {
			t.Errorf("%s: got %v, want no error", sh.name, f)
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
