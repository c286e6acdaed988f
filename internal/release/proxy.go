package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"
)

// A proxy is a folder with the layout of a module proxy, and the variables of a go command that uses it. The command finds
// this repository's modules in the proxy, and all others in the cache of this machine, which has the layout of a proxy, too.
type proxy struct {
	dir string
	env []string
}

func fileURL(dir string) string { return "file:///" + strings.TrimPrefix(filepath.ToSlash(dir), "/") }

// newProxy serves the released modules of a checkout in their next version.
func newProxy(checkout, dir, version string) (*proxy, error) {
	cache, err := output(".", nil, "go", "env", "GOMODCACHE")
	if err != nil {
		return nil, err
	}
	downloads := filepath.Join(strings.TrimSpace(cache), "cache", "download")
	p := &proxy{dir: filepath.Join(dir, "proxy")}
	p.env = []string{
		"GOPROXY=" + fileURL(p.dir) + "," + fileURL(downloads), "GOSUMDB=off", "GONOPROXY=none", "GOPRIVATE=", "GOWORK=off",
		"GOMODCACHE=" + filepath.Join(dir, "cache"), // empty at first, so nothing that it gets stays on this machine
		"GOFLAGS=-modcacherw -trimpath",             // without paths, the next run finds what this one built
	}
	for _, folder := range released {
		if err := p.add(checkout, folder, version); err != nil {
			return nil, fmt.Errorf("%s: %w", folder, err)
		}
	}
	return p, nil
}

// add puts one module into the proxy, with the files that git knows or would add.
func (p *proxy) add(checkout, folder, version string) (err error) {
	v := module.Version{Path: path.Join(root, folder), Version: version}
	files, err := filesOf(filepath.Join(checkout, folder))
	if err != nil {
		return err
	}
	dir := filepath.Join(p.dir, filepath.FromSlash(v.Path), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	goMod, err := os.ReadFile(filepath.Join(checkout, folder, "go.mod"))
	if err != nil {
		return err
	}
	info, err := json.Marshal(map[string]string{"Version": version, "Time": "2026-01-01T00:00:00Z"})
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"list": []byte(version + "\n"), version + ".info": info, version + ".mod": goMod} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	archive, err := os.Create(filepath.Join(dir, version+".zip"))
	if err != nil {
		return err
	}
	return errors.Join(modzip.Create(archive, v, files), archive.Close())
}

// A file is one file of a module.
type file struct{ dir, name string }

func (f file) Path() string                 { return f.name }
func (f file) Lstat() (fs.FileInfo, error)  { return os.Lstat(filepath.Join(f.dir, f.name)) }
func (f file) Open() (io.ReadCloser, error) { return os.Open(filepath.Join(f.dir, f.name)) }

// filesOf returns the files of the module in a folder, without nested modules.
func filesOf(dir string) (files []modzip.File, err error) {
	list, err := output(dir, nil, "git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
	if err != nil {
		return nil, err
	}
	names := strings.Split(strings.TrimRight(list, "\x00"), "\x00")
	var nested []string
	for _, name := range names {
		if path.Base(name) == "go.mod" && name != "go.mod" {
			nested = append(nested, path.Dir(name)+"/")
		}
	}
	for _, name := range names {
		_, err := os.Lstat(filepath.Join(dir, name))
		if err == nil && !slices.ContainsFunc(nested, func(folder string) bool { return strings.HasPrefix(name, folder) }) {
			files = append(files, file{dir, name})
		}
	}
	return files, nil
}

// unzip writes the files of a module of the proxy into a folder, which becomes the main module.
func (p *proxy) unzip(folder, version, dir string) error {
	v := module.Version{Path: path.Join(root, folder), Version: version}
	return modzip.Unzip(dir, v, filepath.Join(p.dir, filepath.FromSlash(v.Path), "@v", version+".zip"))
}
