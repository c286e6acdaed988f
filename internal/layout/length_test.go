// How much users have to read.

package layout

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const (
	maxWords  = 14_000 // of all packages together
	maxScreen = 100    // lines of a package comment: two screens
)

// go doc -all prints at most maxWords words of prose, and package comments of at
// most maxScreen lines.
func TestDocumentationIsShort(t *testing.T) {
	t.Parallel()
	list := exec.Command("go", "list", "./...")
	list.Dir, list.Stderr = "../..", os.Stderr
	packages, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	total, counted := 0, 0
	for imported := range strings.FieldsSeq(string(packages)) {
		folder := strings.TrimPrefix(imported, module+"/")
		if strings.HasPrefix(folder, "examples/") || slices.Contains(strings.Split(folder, "/"), "internal") {
			continue
		}
		words, lines := documentation(t, "./"+folder)
		t.Logf("%s has %d words, and %d lines before its first name", folder, words, lines)
		if lines > maxScreen {
			t.Errorf("%s: its package comment has %d lines, want at most %d", folder, lines, maxScreen)
		}
		total, counted = total+words, counted+1
	}
	if total > maxWords || counted < 12 {
		t.Errorf("%d packages have %d words, want at least 12 packages and at most %d words", counted, total, maxWords)
	}
}

// documentation returns how many words of prose go doc prints for a package, and
// how many lines its package comment has. Prose is indented, or stands behind
// slashes in a declaration.
func documentation(t *testing.T, folder string) (words, lines int) {
	t.Helper()
	doc := exec.Command("go", "doc", "-all", folder)
	doc.Dir, doc.Stderr = "../..", os.Stderr
	out, err := doc.Output()
	if err != nil {
		t.Fatal(err)
	}
	names := false
	for line := range strings.Lines(string(out)) {
		switch line = strings.TrimSuffix(line, "\n"); {
		case line == "CONSTANTS" || line == "VARIABLES" || line == "FUNCTIONS" || line == "TYPES":
			names = true
		case !names && lines == 0 && strings.HasPrefix(line, "package "):
		case !names:
			lines++
			words += len(strings.Fields(line))
		case strings.HasPrefix(line, "    "):
			words += len(strings.Fields(line))
		default:
			_, comment, _ := strings.Cut(line, "//")
			words += len(strings.Fields(comment))
		}
	}
	return words, lines
}
