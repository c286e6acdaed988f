// Package instruments has the parts of the example's page that need no server: the
// limits that visitors may choose, the comparison of limits, and a [Tab], which
// answers the page inside a browser. Their decisions are those of package algorithms.
//
// It is a part of the example, and no API for others. It imports no net/http, because
// a browser loads it as WebAssembly, and net/http would double its weight.
package instruments
