package main

import (
	"context"
	"embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

//go:embed promise_*.go clock.go
var sources embed.FS

// page returns RESULTS.md.
func page(ctx context.Context, cells []cell, redis string) (string, error) {
	versions, err := moduleVersions(ctx)
	if err != nil {
		return "", err
	}
	rules, err := promiseRules()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	modules := map[string]bool{}
	for _, l := range libraries {
		modules[l.module] = true
	}
	fmt.Fprintf(&b, pageHead, len(libraries), len(modules), len(ofLibraries()), time.Now().UTC().Format("2 January 2006"), runtime.Version(), redis, runtime.NumCPU())
	b.WriteString("\n## penstock's own cells that are not green\n\n")
	own := 0
	for _, c := range cells {
		if c.library.module == "" && !c.library.script && c.colour != green {
			own++
			writeCell(&b, c)
		}
	}
	if own == 0 {
		b.WriteString("None.\n")
	}
	writeTable(&b, cells, versions)
	writeScripts(&b, cells)
	b.WriteString("\n## The promises\n\n")
	for _, p := range promises {
		fmt.Fprintf(&b, "**%s.** %s\n\n", p.title, rules[p.name])
	}
	for _, part := range []struct {
		title  string
		colour colour
	}{{"Red cells", red}, {"Grey cells", grey}} {
		fmt.Fprintf(&b, "## %s\n\n", part.title)
		for _, c := range cells {
			if c.colour == part.colour && c.library.module != "" && !c.library.script {
				writeCell(&b, c)
			}
		}
		b.WriteByte('\n')
	}
	return strings.TrimRight(b.String(), "\n") + "\n", nil
}

const pageHead = `# Which rate limiter keeps its word?

` + "`make peers`" + ` writes this page. It holds %d limiters of %d modules to %d promises, and [six scripts](#the-thirty-lines-that-you-were-about-to-write) to seven of them. Each cell is an experiment with the real library, over HTTP
where it has middleware for net/http, and with a real redis-server where it counts there. Made on %s with %s, Redis %s and %d CPUs.

| cell | meaning |
|---|---|
| 🟢 kept | the promise holds |
| 🔴 broken | it does not hold; the link leads to a program of at most 30 lines that shows it without this suite |
| ⚪ not promised | the library's documentation does not promise it; the quote stands below |

- A limiter is set up as its documentation shows it. Limiters without keys stand in a map, one for each key.
- penstock's authors wrote this page, and chose promises that they care about. The choice is ours; the experiments are for everyone to repeat.
- No documentation speaks of steps of the clock. A cell there is red if a limit of 10 per 4 s admits no request in the 8 s after a step.
- A busy machine is no library's fault, so a red cell without a program is tried again. This has helped penstock: with Redis, its calls have
  50 ms by default, and in one of three runs on a busy machine "denials are free" was broken before it was tried again.
- The newest version of each library that could be downloaded on that day is here. Left out: balramadan/distlimit and
  sanskarpan/Rate-Limiter-Circuit-Breaker, because the module proxy refused ` + "`go get`" + ` on 26 November 2026 (403), also v1.2.0 and v1.0.0 by name.
- How well penstock's own algorithms keep their limits: [ACCURACY.md](../accuracy/ACCURACY.md).
- **To correct a cell**, change the adapter or the quote in the library's file in this folder, run ` + "`make peers`" + `, and send the change. If you
  maintain one of the libraries, an issue with a sentence of its documentation is enough.
`

// ofLibraries returns the promises that all libraries are held to.
func ofLibraries() []promise {
	return slices.DeleteFunc(slices.Clone(promises), func(p promise) bool { return p.name == "skew" })
}

// writeTable writes one line for each library.
func writeTable(b *strings.Builder, cells []cell, versions map[string]string) {
	b.WriteString("\n## All cells\n\n| limiter | counts in | version |")
	ofAll := ofLibraries()
	for _, p := range ofAll {
		fmt.Fprintf(b, " %s |", p.title)
	}
	b.WriteString("\n|---|---|---|" + strings.Repeat("---|", len(ofAll)) + "\n")
	for _, l := range libraries {
		version := versions[l.module]
		if l.module == "" {
			version = "this tree"
		}
		fmt.Fprintf(b, "| %s | %s | %s |", l.name, l.store, version)
		for _, p := range ofAll {
			for _, c := range cells {
				if c.library.slug != l.slug || c.promise.name != p.name {
					continue
				}
				fmt.Fprintf(b, " %s |", c.mark())
			}
		}
		b.WriteByte('\n')
	}
}

// mark is the text of a cell in a table.
func (c cell) mark() string {
	if c.colour == red {
		return fmt.Sprintf("[%s](repro/%s/main.go)", red, c.program())
	}
	return string(c.colour)
}

// writeCell explains a cell.
func writeCell(b *strings.Builder, c cell) {
	fmt.Fprintf(b, "- %s **%s** (%s), %s: ", strings.Fields(string(c.colour))[0], c.library.name, c.library.store, c.promise.title)
	if c.what != "" {
		fmt.Fprintf(b, "%s. ", c.what)
	}
	if q := c.library.quoteOf(c.promise.name); q.text != "" {
		fmt.Fprintf(b, "Documentation: “%s” (%s).", strings.ReplaceAll(q.text, "`", ""), q.file)
	}
	if c.colour == red {
		fmt.Fprintf(b, " [Program](repro/%s/main.go): `%s`", c.program(), c.printed)
	}
	b.WriteByte('\n')
}

// promiseRules returns the comments of the promises' functions.
func promiseRules() (map[string]string, error) {
	comments := map[string]string{}
	files, err := sources.ReadDir(".")
	if err != nil {
		return nil, err
	}
	for _, entry := range files {
		text, err := sources.ReadFile(entry.Name())
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), text, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				_, rule, _ := strings.Cut(f.Doc.Text(), ": ")
				comments[f.Name.Name] = strings.Join(strings.Fields(rule), " ")
			}
		}
	}
	rules := map[string]string{}
	for _, p := range promises {
		rules[p.name] = comments[p.function]
	}
	return rules, nil
}

// moduleVersions returns the version and date of each library's module.
func moduleVersions(ctx context.Context) (map[string]string, error) {
	args := []string{"list", "-m", "-f", `{{.Path}} {{.Version}} {{with .Time}}{{.Format "2006-01-02"}}{{end}}`}
	for _, l := range libraries {
		if l.module != "" {
			args = append(args, l.module)
		}
	}
	out, err := exec.CommandContext(ctx, "go", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	versions := map[string]string{}
	for line := range strings.Lines(string(out)) {
		f := append(strings.Fields(line), "")
		versions[f[0]] = strings.TrimSpace(f[1] + ", " + f[2])
	}
	return versions, nil
}
