// The command line.

package main

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
)

var (
	folder = flag.String("o", "", "write the page into this `folder`; otherwise print it")
	really = flag.Bool("real", false, "run real clients against the example server instead of a simulation")
)

// main runs as a test does, because only a test can have a bubble of synctest.
func main() {
	herd := testing.InternalTest{Name: "herd", F: func(t *testing.T) {
		name, page := resultsFile, simulatedPage
		if *really {
			name, page = realFile, realPage
		}
		text, err := page(t)
		if text != "" {
			err = errors.Join(err, write(name, text))
		}
		if err != nil {
			t.Error(err)
		}
	}}
	testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{herd}, nil, nil)
}

// simulate runs a crowd in simulated time.
func simulate(t *testing.T, s setting, k kind, seed uint64) (r result) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { r = s.run(k, seed) })
	return r
}

// write writes a page into the folder, or to standard output.
func write(name, text string) error {
	if *folder == "" {
		_, err := os.Stdout.WriteString(text)
		return err
	}
	return os.WriteFile(filepath.Join(*folder, name), []byte(text), 0o644)
}
