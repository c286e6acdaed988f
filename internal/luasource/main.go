// Command luasource prints the Lua script that package lua hands to Redis, for linters and curious readers.
package main

import (
	"fmt"
	"os"

	"github.com/penstock-go/penstock/lua"
)

func main() {
	if _, err := os.Stdout.WriteString(lua.Source()); err != nil {
		fmt.Fprintln(os.Stderr, "luasource:", err)
		os.Exit(1)
	}
}
