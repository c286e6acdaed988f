package lua_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/internal/redistest"
	"github.com/penstock-go/penstock/lua"
)

// Both scripts see the same server: keys and the clock. outcome returns the reply, what was written, and
// what lone.lua left: how many takes it decided, and how many keys or calls of the last run are among them.
const outcomes = `
local clock, texts = { ARGV[3], ARGV[4] }, {}
for i = 1, #KEYS do
  texts[KEYS[i]] = ARGV[4 + i]
end
local function outcome(script)
  local written, decided, done = {}, -1, -1
  local function left(takes, ofRun)
    decided, done = takes, ofRun
  end
  local function command(name, key, a, b, c)
    local text = texts[key]
    if name == 'TIME' then
      return clock
    elseif name == 'GET' then
      return text == 'list' and { err = 'WRONGTYPE' } or text ~= '' and text
    elseif name == 'MGET' then
      local values = {}
      for i = 1, #KEYS do
        text = texts[KEYS[i]]
        values[i] = text ~= 'list' and text ~= '' and text
      end
      return values
    elseif name == 'INCRBY' then
      if not string.find(text, '^%%d+$') then
        return { err = 'ERR value is not an integer or out of range' }
      end
      written[#written + 1] = key .. ' added ' .. a
      return 1
    elseif name == 'PSETEX' then
      written[#written + 1] = key .. ' ' .. b .. ' for ' .. a .. ' ms'
    elseif name == 'SET' and text ~= 'list' then
      written[#written + 1] = key .. ' ' .. a .. ' for ' .. c .. ' ms'
      return { ok = 'OK' }
    end
    return false
  end
  local reply = script({ call = command, pcall = command, left = left }, KEYS, { ARGV[1], ARGV[2] })
  return { type(reply) == 'table' and table.concat(reply, '; ') or reply, table.concat(written, '; '), decided, done }
end
return { outcome(function(redis, KEYS, ARGV) %s end), outcome(function(redis, KEYS, ARGV) %s end) }`

// nothing is what lone.lua leaves if it decides nothing.
const nothing = "local decided, first_answers, run, done, values = 0, '', 1, 0, false\n"

// The takes that lone.lua decides are decided and stored as takes.lua does it.
func TestLoneTakesAreDecidedAsAllTakes(t *testing.T) {
	t.Parallel()
	testLoneTakes(t, redistest.Start(t).Client(), 2000)
}

// The Lua of miniredis is another program.
func TestMiniredisDecidesLoneTakesAsAllTakes(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { _ = client.Close() })
	testLoneTakes(t, client, 200)
}

func testLoneTakes(t *testing.T, client *redis.Client, cases int) {
	part, err := os.ReadFile("lone.lua")
	if err != nil {
		t.Fatal(err)
	}
	watched := strings.Replace(lua.Source(), string(part), string(part)+"redis.left(decided, done)\n", 1)
	without := strings.Replace(lua.Source(), string(part), nothing, 1)
	script := redis.NewScript(fmt.Sprintf(outcomes, watched, without))
	for name, test := range map[string]struct {
		script func() *takesScript
		all    int // the least cases in which lone.lua decides all takes
		some   int // and some of the last run
	}{
		"one take":                     {func() *takesScript { return newTakesScript(1).run(1, 1) }, cases / 3, 0},
		"takes of one limit":           {func() *takesScript { return newTakesScript(1).run(5, 1) }, cases / 50, cases / 8},
		"a call of three takes":        {func() *takesScript { return newTakesScript(3).call(1, 3) }, cases / 15, 0},
		"calls of two takes":           {func() *takesScript { return newTakesScript(2).call(3, 2) }, cases / 100, cases / 8},
		"takes and calls of all kinds": {anyTakesScript, cases / 30, cases / 50},
	} {
		t.Run(name, func(t *testing.T) {
			all, some := 0, 0
			for range cases {
				s := test.script()
				got, err := script.Run(t.Context(), client, s.keys, s.args()...).Slice()
				if err != nil {
					t.Fatal(err)
				}
				a, b := got[0].([]any), got[1].([]any)
				if a[0] != b[0] || a[1] != b[1] {
					t.Fatalf("%q: got reply %q, written %v; without lone.lua %q, %v", s.args(), a[0], a[1], b[0], b[1])
				}
				if a[2].(int64) < 0 {
					all++
				} else if a[3].(int64) > 0 {
					some++
				}
			}
			if all < test.all || some < test.some {
				t.Errorf("lone.lua decided all takes in %d cases and some takes of a run in %d, want at least %d and %d of %d",
					all, some, test.all, test.some, cases)
			}
		})
	}
}

// A takesScript is a script of takes, each alone on its key, with the clock and the stored states.
type takesScript struct {
	now    int64
	limits []bucketTerms
	takes  []byte
	keys   []string
	states []any // a text per key
}

type bucketTerms struct{ r, w, burst int64 }

// newTakesScript returns a script without takes, which has so many limits.
func newTakesScript(limits int) *takesScript {
	s := &takesScript{now: 1763729430000000}
	if rand.IntN(8) == 0 {
		s.now = 953472161722936 // has 15 digits
	}
	for range limits {
		l := bucketTerms{r: []int64{1, 3, 7}[rand.IntN(3)], w: below(13), burst: below(4)}
		if rand.IntN(4) == 0 {
			l.r, l.w = 999_983, 500*l.w
		}
		s.limits = append(s.limits, l)
	}
	return s
}

// anyTakesScript returns a script of takes and calls, some of them of several takes of a key.
func anyTakesScript() *takesScript {
	s := newTakesScript(1 + rand.IntN(3))
	for range 1 + rand.IntN(3) {
		switch rand.IntN(6) {
		case 0, 1:
			s.call(1+rand.IntN(2), 1+rand.IntN(3))
		case 2:
			s.run(1, 2)
		default:
			s.run(1+rand.IntN(2), 1)
		}
	}
	return s
}

// run adds so many keys with so many takes each, under one limit.
func (s *takesScript) run(alike, times int) *takesScript {
	i := rand.IntN(len(s.limits))
	s.header(alike, times, i+1)
	s.takes = appendDouble(s.takes, s.limits[i].someUnits())
	for range alike {
		s.key(i)
	}
	return s
}

// call adds so many calls of so many takes each.
func (s *takesScript) call(alike, count int) *takesScript {
	s.header(alike, 0, count)
	s.takes = appendDouble(s.takes, 0)
	var limits []int
	for range count {
		i := rand.IntN(len(s.limits))
		s.takes = binary.LittleEndian.AppendUint16(s.takes, uint16(i+1))
		s.takes = appendDouble(s.takes, s.limits[i].someUnits())
		limits = append(limits, i)
	}
	for range alike {
		for _, i := range limits {
			s.key(i)
		}
	}
	return s
}

func (s *takesScript) header(values ...int) {
	for _, v := range values {
		s.takes = binary.LittleEndian.AppendUint16(s.takes, uint16(v))
	}
}

func (s *takesScript) key(limit int) {
	s.keys = append(s.keys, fmt.Sprint("key", len(s.keys)))
	s.states = append(s.states, s.limits[limit].someState(s.now))
}

func (s *takesScript) args() []any {
	var limits []byte
	for _, l := range s.limits {
		limits = append(limits, []string{"tb", "lb"}[l.burst%2]...)
		for _, v := range []int64{l.r, l.w, l.burst, l.burst + l.burst/2, 0} {
			limits = appendDouble(limits, v)
		}
		limits = append(limits, 0)
	}
	return append([]any{limits, s.takes, s.now / 1_000_000, fmt.Sprintf("%06d", s.now%1_000_000)}, s.states...)
}

func appendDouble(dst []byte, v int64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(float64(v)))
}

// someUnits returns the cost of a take.
func (l *bucketTerms) someUnits() int64 {
	if rand.IntN(20) == 0 {
		return l.burst + 1 // never fit
	}
	return rand.Int64N(1 + min(3, l.burst))
}

// someState returns the text of a key.
func (l *bucketTerms) someState(now int64) (text string) {
	r, w, burst := l.r, l.w, l.burst
	n, f := rand.Int64N(burst+2), rand.Int64N(2)*rand.Int64N(r)
	if burst > 1000 && rand.IntN(2) == 0 {
		n = 996 + rand.Int64N(5)
	}
	ago := min(rand.Int64N(1+2*(n+1)*(w/r+1))>>rand.IntN(20), now/2)
	text = fmt.Sprintf("%d:%d:%d", now-ago, n, f)
	if f == 0 && n <= 999 {
		text = fmt.Sprintf("%s%d%03d", []string{"", "-"}[rand.IntN(2)], now-ago, n)
	}
	switch rand.IntN(16) {
	case 0:
		text = ""
	case 1:
		text = fmt.Sprintf("%d%03d", now+rand.Int64N(200_000), rand.Int64N(1000))
	case 2:
		text = fmt.Sprintf("%d:%d:%d", now-rand.Int64N(2)*ago-rand.Int64N(2)*rand.Int64N(now), rand.Int64N(3*burst), rand.Int64N(2*r))
	case 3:
		text = fmt.Sprintf("0x%014x%03d", now-ago, min(n, 999)) // tonumber reads it, and INCRBY does not
	case 4:
		text = []string{
			"1", "no state at all", "1e15            007", "17637294300000:7:0", "1763729400000000.07", "-763729400000000007", "17637294:1:2:3",
			fmt.Sprintf("%040d:7:0", now-ago),
		}[rand.IntN(8)]
	case 5:
		digits := fmt.Appendf(nil, "%d%03d", now-ago, min(n, 999))
		digits[len(digits)-1-rand.IntN(3)] = "/:"[rand.IntN(2)] // the neighbours of the digits
		text = string(digits)
	case 6:
		text = "list"
	}
	return text
}

// below returns a number from 1 with at most so many digits. Each number of digits is equally likely.
func below(digits int) int64 { return 1 + rand.Int64N(int64(math.Pow10(1+rand.IntN(digits)))) }
