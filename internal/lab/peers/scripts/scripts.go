// Package scripts has rate limiters as guides and articles print them: a few lines of Lua that an application runs with EVAL.
// The shapes are theirs, the lines are ours. All take the same arguments:
//
//	KEYS[1]  the client's key
//	ARGV[1]  the limit, in requests
//	ARGV[2]  the window, in milliseconds
//	ARGV[3]  the caller's time, in milliseconds since 1970
//	ARGV[4]  a text that no other call has
//
// Each returns 1 if it admits the request, and 0 if it denies it.
package scripts

import "embed"

//go:embed *.lua
var files embed.FS

// Text returns the script NAME.lua. It panics if there is none.
func Text(name string) string {
	text, err := files.ReadFile(name + ".lua")
	if err != nil {
		panic(err)
	}
	return string(text)
}
