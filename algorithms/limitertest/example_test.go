package limitertest_test

import (
	"flag"
	"fmt"
	"testing"
)

// run runs a test within an Example, and prints whether it passed.
func run(test func(*testing.T)) {
	verbose := flag.Lookup("test.v").Value.String()
	_ = flag.Set("test.v", "false") // its lines would be output of the Example
	defer func() { _ = flag.Set("test.v", verbose) }()
	all := func(string, string) (bool, error) { return true, nil }
	fmt.Println("passed:", testing.RunTests(all, []testing.InternalTest{{Name: "Test", F: test}}))
}
