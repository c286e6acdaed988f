// The files of the site.

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/evanw/esbuild/pkg/api"
)

// A builder writes the site into the folder out.
type builder struct {
	root   string // of the repository
	assets string // of the example's page
	own    string // assets of the site
	out    string
}

func build(root, out string) error {
	root, rootErr := filepath.Abs(root)
	out, outErr := filepath.Abs(out)
	if err := errors.Join(rootErr, outErr); err != nil {
		return err
	}
	b := &builder{
		root: root, out: out,
		assets: filepath.Join(root, "examples/chi-server/playground/assets"),
		own:    filepath.Join(root, "examples/site/assets"),
	}
	if err := os.MkdirAll(filepath.Join(out, "demo"), 0o755); err != nil {
		return err
	}
	for _, step := range []func() error{b.index, b.script, b.limits, b.copies, b.pages} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(b.out, name), content, 0o644)
}

// index writes the page of the instruments. Its style is a part of it, so that one answer is enough to paint it.
func (b *builder) index() error {
	var sheets []string
	for _, name := range []string{"page.css", "form.css", "live.css", "limits.css"} {
		sheets = append(sheets, filepath.Join(b.assets, name))
	}
	style, err := b.style(sheets...)
	if err != nil {
		return err
	}
	page, err := template.ParseFiles(filepath.Join(b.assets, "index.html"))
	if err != nil {
		return err
	}
	var document bytes.Buffer
	err = page.Execute(&document, map[string]any{"Server": false, "Style": style, "Pages": pages})
	return errors.Join(err, b.write("index.html", document.Bytes()))
}

// style joins style sheets, without spaces and comments, for a document at the top of the site.
func (b *builder) style(names ...string) (string, error) {
	var joined []byte
	for _, name := range names {
		part, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		joined = append(joined, part...)
	}
	result := api.Transform(string(joined), api.TransformOptions{Loader: api.LoaderCSS, MinifyWhitespace: true, MinifySyntax: true, Engines: browsers})
	return strings.ReplaceAll(string(result.Code), "url(select.svg)", "url(demo/select.svg)"), failed(result.Errors)
}

// browsers are the oldest that the page is for: nested style sheets and popular modules of 2024 stay as they are.
var browsers = []api.Engine{{Name: api.EngineChrome, Version: "120"}, {Name: api.EngineFirefox, Version: "121"}, {Name: api.EngineSafari, Version: "17.2"}}

// script joins the modules of the page into one script, because browsers load no module from a file. The module that
// asks the server is replaced by the one that asks the WebAssembly.
func (b *builder) script() error {
	replace := api.Plugin{Name: "server", Setup: func(build api.PluginBuild) {
		build.OnResolve(api.OnResolveOptions{Filter: `^\./server\.js$`}, func(api.OnResolveArgs) (api.OnResolveResult, error) {
			return api.OnResolveResult{Path: filepath.Join(b.own, "server.js")}, nil
		})
		build.OnResolve(api.OnResolveOptions{Filter: `\.json$`}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
			return api.OnResolveResult{Path: filepath.Join(b.assets, a.Path)}, nil
		})
	}}
	result := api.Build(api.BuildOptions{
		EntryPoints: []string{filepath.Join(b.assets, "main.js")}, Plugins: []api.Plugin{replace}, Engines: browsers,
		Bundle: true, Format: api.FormatIIFE, MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, LogLevel: api.LogLevelSilent,
	})
	if err := failed(result.Errors); err != nil {
		return err
	}
	return b.write("demo/page.js", result.OutputFiles[0].Contents)
}

func failed(messages []api.Message) (errs error) {
	for _, message := range messages {
		errs = errors.Join(errs, errors.New(message.Text))
	}
	return errs
}

// limits writes the WebAssembly as a script: the toolchain's runtime, and the program as text.
func (b *builder) limits() error {
	binary := filepath.Join(b.out, "limits.wasm")
	defer os.Remove(binary)
	compile := exec.Command("go", "build", "-C", filepath.Join(b.root, "examples/site"), "-trimpath", "-ldflags=-s -w", "-o", binary, "./wasm")
	compile.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	if said, err := compile.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, said)
	}
	program, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	place, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	runtime, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(place)), "lib/wasm/wasm_exec.js"))
	if err != nil {
		return err
	}
	script := fmt.Appendf(runtime, "\nglobalThis.penstockLimits = \"%s\";\n", base64.StdEncoding.EncodeToString(zip(program)))
	return b.write("demo/limits.js", script)
}

func zip(content []byte) []byte {
	var zipped bytes.Buffer
	w, _ := gzip.NewWriterLevel(&zipped, gzip.BestCompression) // the level is right, and a Buffer has no errors
	_, _ = w.Write(content)
	_ = w.Close()
	return zipped.Bytes()
}

func (b *builder) copies() (err error) {
	for _, name := range []string{"icon.svg", "select.svg", "outage.svg"} {
		err = errors.Join(err, b.copyFile("demo/"+name, filepath.Join(b.assets, name)))
	}
	return err
}

func (b *builder) copyFile(name, from string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return b.write(name, content)
}
