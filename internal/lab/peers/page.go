package main

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/internal/lab/nottest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// page returns RESULTS.md.
func page(ctx context.Context, cells []cell) string {
	versions := moduleVersions(ctx)
	_, redis, err := redistest.Version(redisServer())
	nottest.Check(err)
	own := func(c cell) bool { return c.library.module == "" && !c.library.script && c.Colour != green }
	ofOthers := func(colour colour) func(cell) bool {
		return func(c cell) bool { return c.library.module != "" && c.Colour == colour }
	}
	ofLibraries := slices.DeleteFunc(slices.Clone(promises), func(p promise) bool { return p.name == "skew" })
	ofScripts := slices.DeleteFunc(slices.Clone(promises), func(p promise) bool { return !p.concerns(articleScripts[0]) })
	var b strings.Builder
	fmt.Fprintf(&b, pageHead, len(libraries), 1+len(versions), len(ofLibraries), time.Now().UTC().Format("2 January 2006"), runtime.Version(), redis, runtime.NumCPU())
	writeCells(&b, "penstock's own cells that are not green", cells, own)
	b.WriteString("\n## All cells\n\n")
	writeTable(&b, "limiter | counts in | version", libraries, ofLibraries, cells, func(l library) string {
		version := versions[l.module]
		if l.module == "" {
			version = "this tree"
		}
		return l.name + " | " + l.store + " | " + version
	})
	writeScripts(&b, ofScripts, cells)
	b.WriteString("\n## The promises\n\n")
	for _, p := range promises {
		fmt.Fprintf(&b, "**%s.** %s\n\n", p.title, p.rule)
	}
	writeCells(&b, "Red cells", cells, ofOthers(red))
	writeCells(&b, "Grey cells", cells, ofOthers(grey))
	return b.String()
}

const pageHead = `# Which rate limiter keeps its word?

` + "`make peers`" + ` writes this page. It holds %d limiters of %d modules to %d promises, and [six scripts](#the-thirty-lines-that-you-were-about-to-write) to seven. Each cell is an experiment with the real library, over HTTP
where it has middleware for net/http, and with a real redis-server where it counts there. Made on %s with %s, Redis %s and %d CPUs.

| cell | meaning |
|---|---|
| 🟢 kept | the promise holds |
| 🔴 broken | it does not hold; the link leads to a function of at most 30 lines that shows it without this suite |
| ⚪ not promised | the library's documentation does not promise it; the quote stands below |

- A limiter is set up as its documentation shows it. Limiters without keys stand in a map, one for each key.
- penstock's authors wrote this page, and chose promises that they care about. The choice is ours; the experiments are for everyone to repeat.
  ` + "`go -C internal/lab run ./peers -repro httprate-keys`" + ` repeats a red cell.
- No documentation speaks of steps of the clock. A cell there is red if a limit of 10 per 4 s admits no request in the 8 s after a step.
- A busy machine is no library's fault, so a red cell that its function does not confirm is tried again, up to four times. This helps penstock: with Redis, its
  calls have 50 ms by default. On 2 cores with a load average of 40, two of its cells stayed red, and ` + "`make peers`" + ` wrote no page.
- The newest version of each library that could be downloaded on that day is here. Of a library with several stores, the one in Redis is here. Left out are
  libraries that few projects use or that nobody maintains, and the limiters inside of go-zero and failsafe-go.
- What clients notice when Redis dies, with penstock and three of these limiters: [an outage](../outage/RESULTS.md).
- Not in the table: several limits in one decision, and refunds. Nearly none of these libraries promises them.
- How well penstock's own algorithms keep their limits: [ACCURACY.md](../accuracy/ACCURACY.md).
- **To correct a cell**, change the adapter or the quote in the library's file in this folder, run ` + "`make peers`" + `, and send the change. If you
  maintain one of the libraries, an issue with a sentence of its documentation is enough.
`

// writeTable writes one line for each limiter, and one column for each promise.
func writeTable(b *strings.Builder, head string, limiters []library, columns []promise, cells []cell, first func(library) string) {
	rule := strings.Repeat("|---", strings.Count(head, "|")+1+len(columns)) + "|\n"
	for _, p := range columns {
		head += " | " + p.title
	}
	fmt.Fprintf(b, "| %s |\n%s", head, rule)
	for _, l := range limiters {
		fmt.Fprintf(b, "| %s |", first(l))
		for _, p := range columns {
			c := cells[slices.IndexFunc(cells, func(c cell) bool { return c.library.slug == l.slug && c.promise.name == p.name })]
			mark := string(c.Colour)
			if c.Colour == red {
				mark = fmt.Sprintf("[%s](%s)", red, c.file())
			}
			fmt.Fprintf(b, " %s |", mark)
		}
		b.WriteByte('\n')
	}
}

// writeScripts writes the table of the scripts, and what is to be said about each.
func writeScripts(b *strings.Builder, columns []promise, cells []cell) {
	b.WriteString(scriptsHead)
	writeTable(b, "script", append(slices.Clone(articleScripts), penstockRedis), columns, cells, func(l library) string {
		if !l.script {
			return l.name
		}
		return fmt.Sprintf("[%s](scripts/%s.lua)", l.name, strings.TrimPrefix(l.slug, "script-"))
	})
	for _, l := range articleScripts {
		fmt.Fprintf(b, "\n**%s.** %s", l.name, l.right)
		if l.breaks != "" {
			fmt.Fprintf(b, " What breaks: %s", l.breaks)
		}
		b.WriteString("\n\n")
		for _, c := range cells {
			if c.library.slug == l.slug && c.Colour == red {
				c.write(b)
			}
		}
	}
}

const scriptsHead = `
## The thirty lines that you were about to write

Guides and articles print rate limiters as a few lines of Lua. We wrote six scripts of these shapes, and hold them to the promises that matter
to a script. Each is a good start, and each line that breaks is one that most of us would write.

`

// writeCells explains some cells.
func writeCells(b *strings.Builder, title string, cells []cell, explained func(cell) bool) {
	fmt.Fprintf(b, "\n## %s\n\n", title)
	any := false
	for _, c := range cells {
		if explained(c) {
			any = true
			c.write(b)
		}
	}
	if !any {
		b.WriteString("None.\n")
	}
}

// write explains a cell.
func (c cell) write(b *strings.Builder) {
	fmt.Fprintf(b, "- %s **%s** (%s), %s:", strings.Fields(string(c.Colour))[0], c.library.name, c.library.store, c.promise.title)
	if c.What != "" {
		fmt.Fprintf(b, " %s.", c.What)
	}
	if q := c.library.quoteOf(c.promise.name); q.text != "" {
		fmt.Fprintf(b, " Documentation: “%s” (%s).", strings.ReplaceAll(q.text, "`", ""), q.file)
	}
	if c.Colour == red {
		fmt.Fprintf(b, " [Reproduction](%s) `%s`: `%s`", c.file(), c.reproduction(), c.printed)
	}
	b.WriteByte('\n')
}

// file has the function that confirms a red cell.
func (c cell) file() string {
	if c.library.script {
		return "repro/scripts.go"
	}
	return "repro/" + strings.ToLower(c.library.store) + ".go"
}

// moduleVersions returns the version and date of each library's module.
func moduleVersions(ctx context.Context) map[string]string {
	args := []string{"list", "-m", "-f", `{{.Path}} {{.Version}}{{with .Time}}, {{.Format "2006-01-02"}}{{end}}`}
	for _, l := range libraries {
		if l.module != "" {
			args = append(args, l.module)
		}
	}
	out := nottest.Must(exec.CommandContext(ctx, "go", args...).Output())
	versions := map[string]string{}
	for line := range strings.Lines(string(out)) {
		module, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		versions[module] = version
	}
	return versions
}
