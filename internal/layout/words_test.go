// What we write is plain English.

package layout

import (
	"go/doc/comment"
	"go/parser"
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

// maxSentence is the most words of a sentence in README and in package comments.
const maxSentence = 40

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

// Sentences in README and in package comments end in time.
func TestSentencesAreShort(t *testing.T) {
	t.Parallel()
	for name, content := range texts(t) {
		var paragraphs []string
		switch {
		case name == "README.md":
			paragraphs = markdown(content)
		case strings.HasSuffix(name, ".go"):
			paragraphs = packageComment(content)
		}
		for _, p := range paragraphs {
			for _, s := range sentences(p) {
				if n := len(strings.Fields(s)); n > maxSentence {
					t.Errorf("%s: a sentence of %d words, want at most %d: %s", name, n, maxSentence, s)
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
	if got := sentences("One is e.g. here. Two is 1.5 long. Three"); len(got) != 3 {
		t.Errorf("got sentences %q, want 3", got)
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

// packageComment returns the paragraphs of the comment of a package.
func packageComment(content string) (paragraphs []string) {
	file, err := parser.ParseFile(token.NewFileSet(), "", content, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil || file.Doc == nil {
		return nil
	}
	return blocks((&comment.Parser{}).Parse(file.Doc.Text()).Content)
}

func blocks(content []comment.Block) (paragraphs []string) {
	for _, block := range content {
		switch block := block.(type) {
		case *comment.Paragraph:
			doc := &comment.Doc{Content: []comment.Block{block}}
			text := string((&comment.Printer{TextWidth: -1}).Text(doc))
			paragraphs = append(paragraphs, text)
		case *comment.List:
			for _, item := range block.Items {
				paragraphs = append(paragraphs, blocks(item.Content)...)
			}
		}
	}
	return paragraphs
}

// markdown returns the paragraphs and list items of a page, without code, tables
// and headings.
func markdown(content string) []string {
	content = regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(content, "\n\n")
	content = regexp.MustCompile(`(?m)^([-*] |\d+\. )`).ReplaceAllString(content, "\n\n")
	content = regexp.MustCompile(`(?m)^(\||#|<).*$`).ReplaceAllString(content, "\n")
	return strings.Split(content, "\n\n")
}

// sentences cuts a paragraph at points that a capital follows.
func sentences(text string) []string {
	text = strings.Join(strings.Fields(text), " ")
	ends := regexp.MustCompile("[.!?][)\"'*`]* +[A-Z0-9(\\[\"`*]").FindAllStringIndex(text, -1)
	var found []string
	start := 0
	for _, end := range ends {
		found = append(found, text[start:end[1]-1])
		start = end[1] - 1
	}
	return append(found, text[start:])
}

// around returns the words near a phrase.
func around(text, found string) string {
	i := strings.Index(text, found)
	return "..." + text[max(0, i-60):min(len(text), i+len(found)+60)] + "..."
}
