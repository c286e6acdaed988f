package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAPI: a break since the last tag needs an entry in the changelog, and an addition does not.
func TestAPI(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git := func(args ...string) {
		t.Helper()
		if _, err := output(dir, nil, "git", append([]string{"-c", "user.name=x", "-c", "user.email=x@example.com"}, args...)...); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "-q")
	write("go.mod", "module example.com/gate\n\ngo 1.25\n")
	write("gate.go", "package gate\n\nfunc Open() {}\n")
	write("CHANGELOG.md", "# Changelog\n\n## [0.2.0]\n\n### Added\n\n## [0.1.0]\n\n### Removed\n")
	git("add", ".")
	git("commit", "-qm", "one")
	if line, err := compareAPI(dir); err != nil || !strings.HasPrefix(line, "there is no tag yet") {
		t.Errorf("without a tag: got %q and error %v", line, err)
	}
	git("tag", "v0.1.0")
	write("gate.go", "package gate\n\nfunc Open() {}\n\nfunc Close() {}\n")
	if line, err := compareAPI(dir); err != nil || line != "compatible with v0.1.0" {
		t.Errorf("after an addition: got %q and error %v", line, err)
	}
	write("gate.go", "package gate\n\nfunc Open(width int) {}\n")
	if line, err := compareAPI(dir); err == nil || !strings.Contains(err.Error(), "Open") {
		t.Errorf("after a break: got %q and error %v, want an error that names Open", line, err)
	}
	write("CHANGELOG.md", "# Changelog\n\n## [0.2.0]\n\n### Changed\n\n- Open takes a width.\n\n## [0.1.0]\n")
	if line, err := compareAPI(dir); err != nil || !strings.Contains(line, "Open") {
		t.Errorf("after a break that is announced: got %q and error %v", line, err)
	}
}

// TestLicences: a licence is recognized by its text. Modules that adopters link have a permissive one.
func TestLicences(t *testing.T) {
	for text, want := range map[string]string{
		"Permission is hereby granted, free of\ncharge, to any person obtaining a copy": "MIT",
		"Mozilla Public License Version 2.0":                                            "MPL-2.0",
		"GNU GENERAL PUBLIC LICENSE Version 3":                                          "",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "LICENSE.txt"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := licenceOf(dir); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := licenceOf(t.TempDir()); got != "" {
		t.Errorf("without a file: got %q", got)
	}
	if line, err := checkLicences("../.."); err != nil || !strings.Contains(line, "MIT") {
		t.Errorf("got %q and error %v", line, err)
	}
}

// TestModules: the released modules build without replace, and a requirement that no changelog knows is refused.
func TestModules(t *testing.T) {
	if line, err := buildWithoutReplace("../.."); err != nil {
		t.Errorf("got %q and error %v", line, err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"CHANGELOG.md":                  "# Changelog\n\n## [0.1.0]\n",
		"middleware/otelmetrics/go.mod": "module x\n\nrequire " + root + " v0.2.0\n",
	} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if version, err := nextVersion(dir); err == nil || !strings.Contains(err.Error(), "no section") {
		t.Errorf("got %q and error %v, want that CHANGELOG.md has no section of it", version, err)
	}
}
