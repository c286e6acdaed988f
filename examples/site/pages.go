// The results of the lab as pages.

package main

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// source is where the links of a document lead that is not a page of the site.
const source = "https://github.com/penstock-go/penstock/blob/main/"

// A page is a document of the lab.
type page struct {
	File, Title, Says string
	Short             string // in the navigation
	from              string // in the repository
}

var pages = []page{
	{
		"peers.html", "Which rate limiter keeps its word?", "Limiters of other libraries and the scripts of articles, held to the same promises. Each broken promise has a function of at most 30 lines that shows it.",
		"Peers", "internal/lab/peers/RESULTS.md",
	},
	{
		"outage.html", "What clients notice when Redis dies", "Four rate limiters while Redis is killed, slow, and back: errors, admitted requests, and waits.",
		"Outage", "internal/lab/outage/RESULTS.md",
	},
	{
		"accuracy.html", "How exact is each algorithm?", "Each algorithm beside an exact log, under five kinds of traffic: how much it admits too much, and how much too little.",
		"Accuracy", "internal/lab/accuracy/ACCURACY.md",
	},
	{
		"fairness.html", "Who is served beside a client that asks for everything?", "Nine modest tenants and one that asks for everything have one capacity, without shares and with them.",
		"Fairness", "internal/lab/fair/RESULTS.md",
	},
}

// pages writes each document with the pictures that it shows.
func (b *builder) pages() error {
	style, err := b.style(filepath.Join(b.assets, "page.css"), filepath.Join(b.own, "document.css"))
	if err != nil {
		return err
	}
	frame, err := template.ParseFiles(filepath.Join(b.own, "document.html"))
	if err != nil {
		return err
	}
	for _, p := range pages {
		body, err := b.render(p)
		if err != nil {
			return err
		}
		var document bytes.Buffer
		err = frame.Execute(&document, map[string]any{"Page": p, "Pages": pages, "Style": style, "Body": body, "Source": source + p.from})
		if err := errors.Join(err, b.write(p.File, document.Bytes())); err != nil {
			return err
		}
	}
	return nil
}

// render returns the HTML of a document. Its tables stand in regions that scroll, also by the keyboard.
func (b *builder) render(p page) (string, error) {
	content, err := os.ReadFile(filepath.Join(b.root, p.from))
	if err != nil {
		return "", err
	}
	markdown := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	document := markdown.Parser().Parse(text.NewReader(content))
	err = ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := node.(type) {
		case *ast.Link:
			n.Destination = []byte(b.target(p, string(n.Destination)))
		case *ast.Image:
			name := string(n.Destination)
			n.Destination = []byte("demo/" + name)
			return ast.WalkContinue, b.copyFile("demo/"+name, filepath.Join(b.root, path.Dir(p.from), name))
		}
		return ast.WalkContinue, nil
	})
	var body bytes.Buffer
	err = errors.Join(err, markdown.Renderer().Render(&body, content, document))
	return framed(strings.ReplaceAll(body.String(), "<th></th>", "<td></td>")), err // an empty cell is the header of nothing
}

// target returns the place to which a link of a document leads.
func (b *builder) target(p page, link string) string {
	if strings.HasPrefix(link, "#") || strings.Contains(link, "://") {
		return link
	}
	file, anchor, _ := strings.Cut(path.Join(path.Dir(p.from), link), "#")
	if anchor != "" {
		anchor = "#" + anchor
	}
	for _, other := range pages {
		if other.from == file {
			return other.File + anchor
		}
	}
	return source + file + anchor
}

var parts = regexp.MustCompile(`(?s)<h[1-6][^>]*>.*?</h[1-6]>|<table>|</table>|<pre>`)

// framed gives tables and listings a frame that scrolls, and that is named after the heading above it.
func framed(body string) string {
	heading, n := "", 0
	return parts.ReplaceAllStringFunc(body, func(part string) string {
		switch part {
		case "</table>":
			return "</table></div>"
		case "<table>", "<pre>":
			n++
			region := fmt.Sprintf(` tabindex="0" role="region" aria-label="%s, part %d"`, html.EscapeString(heading), n)
			if part == "<pre>" {
				return "<pre" + region + ">"
			}
			return `<div class="scroll"` + region + ">" + part
		default:
			heading = strings.TrimSpace(html.UnescapeString(tags.ReplaceAllString(part, "")))
			return part
		}
	})
}

var tags = regexp.MustCompile(`<[^>]*>`)
