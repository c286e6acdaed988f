// Points: the places at which a mutant changes the code.

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// A mutant is one change of one file.
type mutant struct {
	part     *part
	file     string // from the root of the product
	from, to int    // the bytes that text replaces
	text     string
	line     string // the line of these bytes, without space around it
	changed  string // the line after the change
}

// String names a mutant by its text, so that the name stays valid when other lines
// of the file change.
func (m mutant) String() string { return fmt.Sprintf("%s: %s -> %s", m.file, m.line, m.changed) }

// points returns all mutants of the code.
func points(root string) (all []mutant, err error) {
	for i := range parts {
		before := len(all)
		for _, glob := range parts[i].globs {
			for name, source := range sources(root, glob) {
				c := collector{part: &parts[i], file: name, source: source}
				if filepath.Ext(name) == ".lua" {
					c.lua()
				} else if err := c.golang(); err != nil {
					return nil, err
				}
				all = append(all, c.found...)
			}
		}
		if len(all) == before {
			return nil, fmt.Errorf("part %s has no code", parts[i].name)
		}
	}
	return all, nil
}

// sources returns the files of the product that a glob matches, except for tests, in the order of their names.
func sources(root, glob string) iter.Seq2[string, string] {
	return func(yield func(name, source string) bool) {
		names, _ := fs.Glob(os.DirFS(root), glob) // the pattern is valid
		for _, name := range names {
			source, err := os.ReadFile(filepath.Join(root, name))
			if err == nil && !strings.HasSuffix(name, "_test.go") && !yield(name, string(source)) {
				return
			}
		}
	}
}

// A collector finds the points of one file.
type collector struct {
	part         *part
	file, source string
	found        []mutant
}

// add records a mutant in which text replaces the bytes between two offsets. If
// they span several lines, the mutant's line is the first of them.
func (c *collector) add(from, to int, text string) {
	begin := strings.LastIndexByte(c.source[:from], '\n') + 1
	end := to + strings.IndexByte(c.source[to:]+"\n", '\n')
	line, _, _ := strings.Cut(strings.TrimSpace(c.source[begin:end]), "\n")
	changed, _, _ := strings.Cut(strings.TrimSpace(c.source[begin:from]+text+c.source[to:end]), "\n")
	c.found = append(c.found, mutant{c.part, c.file, from, to, text, line, changed})
}

var goOperators = map[token.Token]string{
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.EQL: "!=", token.NEQ: "==",
	token.ADD: "-", token.SUB: "+", token.MUL: "+", token.QUO: "*", token.REM: "/", token.LAND: "||", token.LOR: "&&",
	token.ADD_ASSIGN: "-=", token.SUB_ASSIGN: "+=",
}

var goNames = map[string]string{"min": "max", "max": "min", "true": "false", "false": "true"}

func (c *collector) golang() error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, c.file, c.source, 0)
	if err != nil {
		return err
	}
	place := func(p token.Pos) int { return files.Position(p).Offset }
	operator := func(at token.Pos, op token.Token) {
		if text, ok := goOperators[op]; ok {
			c.add(place(at), place(at)+len(op.String()), text)
		}
	}
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || function.Body == nil {
			continue
		}
		ast.Inspect(function.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ArrayType:
				return false // lengths of buffers
			case *ast.BinaryExpr:
				operator(n.OpPos, n.Op)
			case *ast.AssignStmt:
				operator(n.TokPos, n.Tok)
			case *ast.Ident:
				if text, ok := goNames[n.Name]; ok {
					c.add(place(n.Pos()), place(n.End()), text)
				}
			case *ast.BasicLit:
				if value, err := strconv.Atoi(n.Value); err == nil {
					c.add(place(n.Pos()), place(n.End()), strconv.Itoa(value+1))
				}
			case *ast.IfStmt:
				c.add(place(n.Cond.Pos()), place(n.Cond.End()), "!("+c.source[place(n.Cond.Pos()):place(n.Cond.End())]+")")
			case *ast.ExprStmt:
				if !guards(n) {
					c.add(place(n.Pos()), place(n.End()), "")
				}
			}
			return true
		})
	}
	return nil
}

// guards reports whether a statement locks, unlocks or panics. It is not removed:
// without an unlock the tests would only hang, and no test reaches a panic.
func guards(n *ast.ExprStmt) bool {
	call, ok := n.X.(*ast.CallExpr)
	if !ok {
		return true
	}
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name == "panic"
	case *ast.SelectorExpr:
		return strings.HasSuffix(f.Sel.Name, "ock")
	}
	return false
}

var (
	luaPoint = regexp.MustCompile(` (<|<=|>|>=|==|~=|\+|-|\*|/|%|and|or) |\b(min|max|floor|ceil)\(|\bnot |\b(true|false)\b|\b(\d+)\b`)
	luaCall  = regexp.MustCompile(`^\s*(call|expire|keep|put|save|say|write|remove|step_back|reset)\(.*\)$`)
	luaSwaps = map[string]string{
		"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "~=", "~=": "==", "+": "-", "-": "+", "*": "+", "/": "*",
		"%": "*", "and": "or", "or": "and", "min": "max", "max": "min", "floor": "ceil", "ceil": "floor",
		"true": "false", "false": "true",
	}
)

func (c *collector) lua() {
	at := 0
	for line := range strings.Lines(c.source) {
		code, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "--")
		if luaCall.MatchString(code) {
			c.add(at+len(code)-len(strings.TrimLeft(code, " ")), at+len(code), "")
		}
		for _, m := range luaPoint.FindAllStringSubmatchIndex(code, -1) {
			if strings.Count(code[:m[0]], "'")%2 == 1 {
				continue // inside a string
			}
			from, to, text := m[0], m[1], "" // not
			for group := 2; group < len(m); group += 2 {
				if m[group] >= 0 {
					from, to = m[group], m[group+1]
					text = luaSwaps[code[from:to]]
					if value, err := strconv.Atoi(code[from:to]); err == nil {
						text = strconv.Itoa(value + 1)
					}
				}
			}
			c.add(at+from, at+to, text)
		}
		at += len(line)
	}
}
