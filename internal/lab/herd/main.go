// The command line.

package main

import (
	"errors"
	"flag"
	"os"
	"testing"
	"testing/synctest"
)

var (
	folder = flag.String("o", "", "write the tables and plots into this `folder`; otherwise print the tables")
	really = flag.Bool("real", false, "run real clients against the example server instead of a simulation")
)

// main runs as a test does, because only a test can have a bubble of synctest.
func main() {
	herd := testing.InternalTest{Name: "herd", F: func(t *testing.T) {
		var files map[string]string
		var err error
		if *really {
			files, err = realFiles(t)
		} else {
			files, err = simulatedFiles(t)
		}
		if err = errors.Join(err, write(files)); err != nil {
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

// write writes files into the folder, or their tables to standard output.
func write(files map[string]string) error {
	var errs []error
	for name, text := range files {
		var err error
		switch {
		case *folder != "":
			err = os.WriteFile(*folder+"/"+name, []byte(text), 0o644)
		case name == resultsFile || name == realFile:
			_, err = os.Stdout.WriteString(text)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
