// Package lua, which a minor version may change, holds the Redis script that decides: one step per algorithm, each
// the twin of the Go file of the same name, and the loop that runs them.
//
// The script needs the commands DEL, GET, INCRBY, MGET, PSETEX, SET and TIME.
// Sliding window logs also need LINDEX, LLEN, LRANGE, LREM, LSET, LTRIM,
// PEXPIRE and RPUSH. Concurrent requests also need PEXPIRE, ZADD, ZCARD,
// ZRANGE, ZRANGEBYSCORE, ZREM, ZREMRANGEBYRANK, ZREMRANGEBYSCORE and ZSCORE.
//
// An operator may load the script with SCRIPT LOAD, and grant EVALSHA without
// EVAL.
//
// A new algorithm is a new file. go generate updates the digest.
package lua

import (
	"embed"
	"slices"
	"strings"
)

//go:generate go run ../internal/luasource -digest digest.go

//go:embed *.lua
var files embed.FS

// The script begins with the files that all algorithms need, and the algorithms
// that others build on.
var first = []string{"struct.lua", "prelude.lua", "lone.lua", "limits.lua", "state.lua", "token_bucket.lua", "fixed_window.lua"}

// It ends with the decisions, which need all algorithms.
var last = []string{"takes.lua", "keys.lua", "settle.lua", "call.lua"}

// Source returns the script.
func Source() string {
	var script strings.Builder
	for _, name := range parts() {
		part, err := files.ReadFile(name)
		if err != nil {
			panic("lua: " + err.Error()) // go:embed holds it, or nothing builds
		}
		script.Write(part)
		script.WriteByte('\n')
	}
	return script.String()
}

// parts returns the files of the script, in the order in which each uses the
// files before it.
func parts() []string {
	entries, err := files.ReadDir(".") // sorted
	if err != nil {
		panic("lua: " + err.Error())
	}
	parts := slices.Clone(first)
	for _, e := range entries {
		if name := e.Name(); !slices.Contains(first, name) && !slices.Contains(last, name) {
			parts = append(parts, name)
		}
	}
	return append(parts, last...)
}
