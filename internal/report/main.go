// Command report prints what readers and reviewers want to know of the code in a folder: the lines, the density and the
// exported names of each package, and the functions that one request runs. Nothing fails because of a figure.
//
// Run it from the root of the module.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
)

func main() {
	request := flag.Bool("request", true, "run a benchmark to find the functions of one request")
	flag.Parse()
	if err := run(*request); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(request bool) error {
	packages, err := measure(".")
	if err != nil {
		return err
	}
	fmt.Printf("%-50s %6s %6s %6s %9s %7s %9s %6s\n", "package", "files", "lines", "longest", "tokens/ln", "triples", "test lines", "names")
	var all figures
	for _, p := range packages {
		p.print(p.folder)
		all.add(&p.figures)
	}
	all.print("all")
	if !request {
		return nil
	}
	files, err := functionsOfARequest()
	if err != nil {
		return err
	}
	total := 0
	fmt.Println("\nfunctions of an admitted request, under one token bucket in a Memory:")
	for _, file := range files {
		slices.Sort(file.functions)
		total += len(file.functions)
		fmt.Printf("  %s: %s\n", file.name, strings.Join(file.functions, " "))
	}
	fmt.Printf("%d functions in %d files\n", total, len(files))
	return nil
}
