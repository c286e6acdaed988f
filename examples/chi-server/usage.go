// The text of -h.

package main

import (
	"flag"
	"fmt"
	"io"
	"strings"
)

const examples = `chi-server is an API with a limit for each route.

  chi-server                                        limit in memory
  chi-server -redis redis://127.0.0.1:6379          limit together with other instances
  chi-server -replay access.log                     run an access log through the limits
`

// replayFlags require -replay.
var replayFlags = []string{"policies", "routes", "tiers", "format", "svg", "deny-requests", "deny-clients", "headroom"}

// A replay serves nothing, and limits in memory.
var (
	servingFlags = []string{"addr", "trusted-proxies", "headers", "admin-token", "access-log"}
	redisFlags   = []string{"redis", "prefix", "demo-outage"}
)

// groups have every flag.
var groups = []struct {
	title string
	flags []string
}{
	{"Serving", servingFlags},
	{"Redis", redisFlags},
	{"Limits", []string{"override"}},
	{"Load", []string{"hammer"}},
	{"Replay", append([]string{"replay"}, replayFlags...)},
}

const (
	columns = 80
	indent  = "        "
)

// usage writes the flags by group, in lines that fit a terminal.
func usage(w io.Writer, flags *flag.FlagSet) {
	fmt.Fprint(w, examples)
	for _, group := range groups {
		fmt.Fprintf(w, "\n%s:\n", group.title)
		for _, name := range group.flags {
			f := flags.Lookup(name)
			value, text := flag.UnquoteUsage(f)
			fmt.Fprintf(w, "  -%s\n", strings.TrimSpace(name+" "+value))
			if f.DefValue != "" && f.DefValue != "false" {
				text += fmt.Sprintf(" (default %s)", f.DefValue)
			}
			for line := range strings.Lines(text) {
				fmt.Fprint(w, wrapped(strings.TrimSuffix(line, "\n")))
			}
		}
	}
}

// wrapped indents a line, and breaks it at spaces. A line with two spaces in a row is
// a row of a table, and stays whole.
func wrapped(line string) string {
	if len(indent)+len(line) <= columns || strings.Contains(line, "  ") {
		return indent + line + "\n"
	}
	end := strings.LastIndexByte(line[:columns-len(indent)+1], ' ') // no word is longer than a line
	return indent + line[:end] + "\n" + wrapped(line[end+1:])
}
