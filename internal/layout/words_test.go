// What we write is plain English.

package layout

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// A habit is a phrase that readers stumble over.
type habit struct {
	phrase *regexp.Regexp
	remedy string
}

// No text in the repository has a phrase of words.txt. To change the list, change
// that file, and say there why.
func TestWords(t *testing.T) {
	t.Parallel()
	list := habits(t)
	for name, content := range texts(t) {
		for _, text := range passages(name, content) {
			for _, h := range list {
				if found := h.phrase.FindString(text); found != "" {
					t.Errorf("%s: %q: write %s\n\t%s", name, strings.TrimSpace(found), h.remedy, around(text, found))
				}
			}
		}
	}
}

// The check finds a phrase across lines, and in each kind of file.
func TestWordsFind(t *testing.T) {
	t.Parallel()
	list := habits(t)
	const bad = "but " + "for"
	for name, content := range map[string]string{
		"comment.go": "package p\n\n// All but\n//\tfor one.\nvar x int\n",
		"string.go":  "package p\n\nvar x = \"all " + bad + " one\"\n",
		"a.lua":      "local x = 1 -- all " + bad + " one\n",
		"a.md":       "All but\nfor one.\n",
		"a.html":     "<p>all " + bad + " one</p>",
	} {
		found := 0
		for _, text := range passages(name, content) {
			for _, h := range list {
				found += len(h.phrase.FindAllString(text, -1))
			}
		}
		if found != 1 {
			t.Errorf("%s: got %d phrases, want 1", name, found)
		}
	}
}

// habits reads words.txt.
func habits(t *testing.T) (list []habit) {
	t.Helper()
	for line := range strings.Lines(string(read(t, "words.txt"))) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		// Split at bars with spaces: bars without are of the expression.
		fields := strings.Split(line, " | ")
		if len(fields) != 3 {
			t.Fatalf("words.txt: got %d fields in %q, want phrase, remedy and reason", len(fields), line)
		}
		list = append(list, habit{regexp.MustCompile(`\b` + fields[0] + `\b`), fields[1]})
	}
	return list
}

// texts returns the files of the repository that people read, except what others wrote.
func texts(t *testing.T) map[string]string {
	t.Helper()
	files, root := map[string]string{}, os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(name string, e fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case err != nil:
			return err
		case e.IsDir() && (base == "node_modules" || base == "testdata" || name != "." && base[0] == '.'):
			return fs.SkipDir
		case e.IsDir():
			return nil
		}
		switch path.Ext(name) {
		case ".go", ".lua", ".md", ".html", ".js":
			content, err := fs.ReadFile(root, name)
			files[name] = string(content)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// passages returns the texts in a file, in lower case and without line breaks.
func passages(name, content string) (found []string) {
	switch path.Ext(name) {
	case ".go":
		found = goPassages(content)
	case ".lua":
		var comments []string
		for line := range strings.Lines(content) {
			_, text, _ := strings.Cut(line, "--")
			comments = append(comments, text)
		}
		found = []string{strings.Join(comments, "\n")}
	default:
		found = []string{content}
	}
	for i, text := range found {
		found[i] = strings.ToLower(strings.Join(strings.Fields(text), " "))
	}
	return found
}

// goPassages returns the strings and the comments of a Go file. Comments of
// consecutive lines are one passage.
func goPassages(content string) (found []string) {
	set := token.NewFileSet()
	var s scanner.Scanner
	s.Init(set.AddFile("", set.Base(), len(content)), []byte(content), nil, scanner.ScanComments)
	comment := false
	for {
		_, tok, text := s.Scan()
		switch tok {
		case token.EOF:
			return found
		case token.COMMENT:
			text = strings.Trim(text, "/*")
			if comment {
				found[len(found)-1] += "\n" + text
			} else {
				found = append(found, text)
			}
			comment = true
			continue
		case token.STRING:
			found = append(found, text)
		case token.SEMICOLON:
			if text == "\n" {
				continue // it ends a line with a comment behind it
			}
		}
		comment = false
	}
}

// around returns the words near a phrase.
func around(text, found string) string {
	i := strings.Index(text, found)
	return "..." + text[max(0, i-60):min(len(text), i+len(found)+60)] + "..."
}
