// Command report prints what readers and reviewers want to know of the code in a folder: the lines, the density and the
// exported names of each package. Nothing fails because of a figure.
//
// Run it from the root of the module.
package main

import (
	"fmt"
	"os"
)

func main() {
	packages, err := measure(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
	fmt.Printf("%-50s %6s %6s %6s %9s %9s %6s\n", "package", "files", "lines", "longest", "tokens/ln", "test lines", "names")
	var all figures
	for _, p := range packages {
		p.print(p.folder)
		all.add(&p.figures)
	}
	all.print("all")
}
