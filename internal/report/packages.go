package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// figures count code without tests, except for testLines.
type figures struct {
	files     int
	lines     int // that have code
	longest   int // lines of the longest file, all kinds
	tokens    int
	names     int // exported names; methods count
	testLines int // of tests, that have code
}

type goPackage struct {
	folder string
	figures
}

// skipped folders have code of others.
var skipped = []string{"testdata", "node_modules", ".git", ".bin"}

// measure returns the packages below a folder, in the order of their folders.
func measure(root string) ([]goPackage, error) {
	var packages []goPackage
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(skipped, d.Name()):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(name) != ".go":
			return nil
		}
		folder := filepath.ToSlash(filepath.Dir(name))
		i := slices.IndexFunc(packages, func(p goPackage) bool { return p.folder == folder })
		if i < 0 {
			i, packages = len(packages), append(packages, goPackage{folder: folder})
		}
		source, err := os.ReadFile(name)
		return errors.Join(err, packages[i].count(name, source))
	})
	return packages, err
}

// count adds a file.
func (f *figures) count(name string, source []byte) error {
	lines, tokens := scan(name, source)
	if strings.HasSuffix(name, "_test.go") {
		f.testLines += lines
		return nil
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	f.files++
	f.lines += lines
	f.tokens += tokens
	f.longest = max(f.longest, strings.Count(string(source), "\n"))
	f.names += namesOf(file)
	return nil
}

// scan counts the lines that have code, and the tokens.
func scan(name string, source []byte) (lines, tokens int) {
	set := token.NewFileSet()
	file := set.AddFile(name, -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, 0)
	last := 0
	for {
		pos, tok, text := s.Scan()
		switch {
		case tok == token.EOF:
			return lines, tokens
		case tok == token.SEMICOLON && text == "\n": // the end of a line writes it
			continue
		}
		tokens++
		first := file.Line(pos)
		end := first + strings.Count(text, "\n")
		lines += end - max(first-1, last)
		last = end
	}
}

// namesOf counts the exported names of a file, and drops most others from it.
func namesOf(file *ast.File) (names int) {
	ast.FileExports(file)
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil || ast.IsExported(strings.TrimPrefix(types.ExprString(d.Recv.List[0].Type), "*")) {
				names++
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.ValueSpec:
					names += len(s.Names)
				case *ast.TypeSpec:
					names++
				}
			}
		}
	}
	return names
}

func (f *figures) add(other *figures) {
	f.files += other.files
	f.lines += other.lines
	f.longest = max(f.longest, other.longest)
	f.tokens += other.tokens
	f.names += other.names
	f.testLines += other.testLines
}

func (f *figures) print(label string) {
	perLine := float64(f.tokens) / float64(max(1, f.lines))
	fmt.Printf("%-50s %6d %6d %6d %9.1f %9d %6d\n", label, f.files, f.lines, f.longest, perLine, f.testLines, f.names)
}
