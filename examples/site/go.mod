module github.com/penstock-go/penstock/examples/site

go 1.25.0

replace github.com/penstock-go/penstock => ../..

require (
	github.com/evanw/esbuild v0.28.2
	github.com/penstock-go/penstock v0.0.0-00010101000000-000000000000
	github.com/yuin/goldmark v1.8.7
)

require golang.org/x/sys v0.47.0 // indirect
