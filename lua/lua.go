// Package lua holds the Redis script that decides: one step per algorithm, each
// the twin of the Go file of the same name in package algorithms, and the loop
// that runs them.
//
// The script needs the commands DEL, GET, INCRBY, LINDEX, LLEN, LRANGE, LREM,
// LSET, LTRIM, MGET, PEXPIRE, PTTL, RPUSH, SET and TIME; for concurrent requests also ZADD,
// ZCARD, ZRANGE, ZRANGEBYSCORE, ZREM, ZREMRANGEBYRANK, ZREMRANGEBYSCORE and
// ZSCORE. An operator who does not want to grant EVAL can load it with SCRIPT LOAD
// and grant EVALSHA alone.
package lua

import (
	"embed"
	"strings"
)

//go:embed *.lua
var files embed.FS

// parts are the files of the script, in the order in which each uses what
// stands before.
var parts = []string{
	"prelude.lua",
	"takes.lua",
	"steps.lua",
	"token_bucket.lua",
	"leaky_bucket.lua",
	"sliding_window_counter.lua",
	"sliding_window_log.lua",
	"fixed_window.lua",
	"calendar_window.lua",
	"concurrent.lua",
	"decide.lua",
}

// Source returns the script.
func Source() string {
	var script strings.Builder
	for _, name := range parts {
		part, err := files.ReadFile(name)
		if err != nil {
			panic("lua: " + err.Error()) // go:embed holds it, or nothing builds
		}
		script.Write(part)
		script.WriteByte('\n')
	}
	return script.String()
}
