package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock-go/penstock/internal/lab/command"
)

// The paths of the parts name code of the product, and a mutant changes one line of it.
func TestPartsHaveCode(t *testing.T) {
	t.Parallel()
	root, err := command.Product(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found, err := points(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range found {
		if _, err := os.Stat(filepath.Join(root, m.file)); err != nil || m.line == m.changed {
			t.Errorf("%s: got %v, want a change of a file", m, err)
		}
	}
}

// Each known mutant has a reason.
func TestEquivalentsHaveReasons(t *testing.T) {
	t.Parallel()
	known := readEquivalents()
	for m, reason := range known {
		if m == "" || reason == "" {
			t.Errorf("%q: got reason %q", m, reason)
		}
	}
	if len(known) == 0 {
		t.Error("got no equivalents, want those of equivalents.txt")
	}
}
