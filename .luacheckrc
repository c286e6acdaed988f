-- The script runs inside Redis: Lua 5.1 without a file system, and with Redis's own globals.
-- cjson, cmsgpack and bit are there, too, but stay undeclared: they round or cut our integers.
std = "lua51"
not_globals = {
	"arg", "collectgarbage", "dofile", "io", "load", "loadfile", "module", "os", "package", "print", "require",
}
read_globals = { "redis", "KEYS", "ARGV" }
max_line_length = 120
