package main

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

const resultsFile = "RESULTS.md"

// main runs as a test does, because only a test can have a bubble of synctest.
func main() {
	folder := flag.String("o", ".", "the `folder` for RESULTS.md")
	herd := testing.InternalTest{Name: "herd", F: func(t *testing.T) {
		if err := os.WriteFile(filepath.Join(*folder, resultsFile), []byte(page(t)), 0o644); err != nil {
			t.Error(err)
		}
	}}
	testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{herd}, nil, nil)
}
