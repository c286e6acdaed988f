// Command site builds penstock's page without a server: static files for any host. It needs the Go toolchain and this
// repository. Run make site.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	root := flag.String("root", "../..", "the repository")
	out := flag.String("o", "../../.bin/site", "the folder to write into")
	flag.Parse()
	if err := build(*root, *out); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}
