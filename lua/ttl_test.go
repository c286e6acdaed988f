package lua_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/internal/redistest"
	"github.com/penstock-go/penstock/lua"
)

// lives takes units of one key at several instants, from a server that expires it. It returns how many takes added to
// the state, and how many wrote it with a TTL. It returns an error if the key expires before its state is full, or more
// than two spans later.
const lives = `
local r, w, burst, clock = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local text, expires, added, written = false, 0, 0, 0
local function ms()
  return math.floor(clock / 1000)
end
local function command(name, key, a, b, c)
  if text and ms() > expires then
    text = false
  end
  if name == 'TIME' then
    return { string.format('%%d', math.floor(clock / 1000000)), string.format('%%d', clock %% 1000000) }
  elseif name == 'GET' then
    return text
  elseif name == 'MGET' then
    return { text }
  elseif name == 'INCRBY' then
    added = added + 1
    text = string.format('%%s%%03d', string.format('%%d', tonumber(string.sub(text, 1, -4)) + math.floor((tonumber(string.sub(text, -3)) + a) / 1000)),
      (tonumber(string.sub(text, -3)) + a) %% 1000)
  elseif name == 'PSETEX' then
    written, text, expires = written + 1, b, ms() + a
  elseif name == 'SET' then
    written, text, expires = written + 1, a, ms() + c
    return { ok = 'OK' }
  end
  return 1
end
local function script(redis, KEYS, ARGV) %s end
for i = 7, #ARGV do
  clock = clock + ARGV[i]
  script({ call = command, pcall = command }, { 'key' }, { ARGV[1], ARGV[2] })
  local t, n, f = string.match(text, '^(%%d+):(%%d+):(%%d+)$')
  if not t then
    t, n, f = string.match(text, '^-?(%%d+)(%%d%%d%%d)$')
    f = 0
  end
  local full = t + (n * w + f) / r
  local most = full + 2 * math.min(burst * w / r, 10000000) + 3000
  if expires * 1000 + 999 < full or expires * 1000 > most then
    return { err = string.format('at %%d: %%s expires at %%d ms; it is full at %%d', clock, text, expires, full) }
  end
end
return { added, written }`

// A key lives until its state is full, by the clock of the server, and at most two spans longer.
func TestKeysLiveUntilTheyAreFull(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client()
	for name, script := range livesScripts(t) {
		for range 1000 {
			l := newTakesScript(1).limits[0]
			for l.burst < 10 {
				l.burst *= 10
			}
			if _, _, err := l.paused(t, client, script, 2*(l.w/l.r+1)); err != nil {
				t.Fatalf("%s of %+v: %v", name, l, err)
			}
		}
	}
}

// A state that is full at the end of a span belongs to the next span.
func TestKeysThatAreFullWhenASpanEnds(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client()
	for name, script := range livesScripts(t) {
		l := bucketTerms{r: 1, w: 1_000_000, burst: 10}
		pauses := []int64{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1_000_000} // ten units from the beginning of a span of ten seconds
		if added, written, err := l.lives(t, client, script, pauses); err != nil || added != 8 || written != 3 {
			t.Errorf("%s: %d takes added to the state, and %d wrote its TTL, too (error %v); want 8 and 3", name, added, written, err)
		}
	}
}

// Of a bucket of 100 per minute, a busy client's takes leave the TTL alone, except once in ten seconds.
func TestBusyKeysKeepTheirTTL(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client()
	for name, script := range livesScripts(t) {
		l := bucketTerms{r: 1, w: 600_000, burst: 100}
		added, written, err := l.paused(t, client, script, 1_200_000)
		if err != nil || written > 2+2*(added+written)*600_000/10_000_000 {
			t.Errorf("%s: %d takes added to the state, and %d wrote its TTL, too (error %v); want few of these", name, added, written, err)
		}
	}
}

func livesScripts(t *testing.T) map[string]*redis.Script {
	part, err := os.ReadFile("lone.lua")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*redis.Script{
		"lone takes": redis.NewScript(fmt.Sprintf(lives, lua.Source())),
		"all takes":  redis.NewScript(fmt.Sprintf(lives, strings.Replace(lua.Source(), string(part), nothing, 1))),
	}
}

// paused takes units one by one, after pauses of up to so many µs, mostly short ones.
func (l bucketTerms) paused(t *testing.T, client *redis.Client, script *redis.Script, pause int64) (added, written int64, err error) {
	pauses := []int64{rand.Int64N(20_000_000)}
	for range 30 {
		pauses = append(pauses, rand.Int64N(1+pause)>>rand.IntN(20))
	}
	return l.lives(t, client, script, pauses)
}

// lives takes units one by one. Each pause is before a take. A span of ten seconds begins before the first.
func (l bucketTerms) lives(t *testing.T, client *redis.Client, script *redis.Script, pauses []int64) (added, written int64, err error) {
	s := &takesScript{limits: []bucketTerms{l}}
	s.header(1, 1, 1)
	s.takes = appendDouble(s.takes, 1)
	args := []any{s.args()[0], s.takes, l.r, l.w, l.burst, int64(1763729430000000)}
	for _, pause := range pauses {
		args = append(args, pause)
	}
	got, err := script.Run(t.Context(), client, []string{"key"}, args...).Int64Slice()
	if err != nil {
		return 0, 0, err
	}
	return got[0], got[1], nil
}
