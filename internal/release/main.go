// Command release checks what a release promises, and prints one line for each check.
//
// Run it in a checkout, e.g. with make release-check:
//
//	API              no public name of the last tag is gone, unless CHANGELOG.md says so
//	licences         each module that an adopter may link or test with has a known, permissive licence
//	modules          the modules that are released build without replace
//	vulnerabilities  govulncheck finds none
//
// A check that cannot run here says why, and fails nothing.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// root is the module of this repository.
const root = "github.com/penstock-go/penstock"

// released are the folders of the modules that get a tag. The examples follow them, because people copy their go.mod.
var released = []string{".", "middleware/otelmetrics"}

func main() {
	checkout, err := output(".", nil, "git", "rev-parse", "--show-toplevel")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	failed := false
	for _, check := range []struct {
		name string
		run  func(checkout string) (line string, err error)
	}{
		{"API", compareAPI},
		{"licences", checkLicences},
		{"modules", buildWithoutReplace},
		{"vulnerabilities", findVulnerabilities},
	} {
		line, err := check.run(strings.TrimSpace(checkout))
		if err != nil {
			failed, line = true, "FAILED: "+err.Error()
		}
		fmt.Printf("%-16s %s\n", check.name, line)
	}
	if failed {
		os.Exit(1)
	}
}

// findVulnerabilities runs govulncheck, whose database is in the network.
func findVulnerabilities(checkout string) (string, error) {
	for _, dir := range released {
		found, err := output(checkout+"/"+dir, nil, "go", "tool", "-modfile="+checkout+"/internal/release/go.mod", "govulncheck", "./...")
		switch {
		case err != nil && strings.Contains(err.Error(), "fetching vulnerabilities"):
			return "could not run: the database cannot be reached from here", nil
		case err != nil:
			return "", fmt.Errorf("%s: %w\n%s", dir, err, found)
		}
	}
	return "none", nil
}

// output runs a command in a folder, with variables beside those of this process.
func output(dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return string(out), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(exit.Stderr)))
	}
	return string(out), err
}
