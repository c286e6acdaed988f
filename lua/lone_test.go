package lua_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/internal/redistest"
	"github.com/penstock-go/penstock/lua"
)

// Both scripts see the same server: keys, their TTLs and the clock. outcome returns the reply, what was written, and
// how many of the keys were read more than once.
const outcomes = `
local clock, texts, ttls, numbers = { ARGV[3], ARGV[4] }, {}, {}, {}
for i = 1, #KEYS do
  texts[KEYS[i]], ttls[KEYS[i]] = ARGV[3 + 2 * i], tonumber(ARGV[4 + 2 * i])
end
local function outcome(script)
  local written, mgets = {}, 0
  local function command(name, key, a, b, c)
    local text = texts[key]
    if name == 'TIME' then
      return clock
    elseif name == 'GET' then
      return text == 'list' and { err = 'WRONGTYPE' } or text ~= '' and text
    elseif name == 'MGET' then
      mgets = mgets + 1
      local values = {}
      for i = 1, #KEYS do
        text = texts[KEYS[i]]
        values[i] = text ~= 'list' and text ~= '' and text
      end
      return values
    elseif name == 'PTTL' then
      return ttls[key]
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
  local reply = script({ call = command, pcall = command }, KEYS, { ARGV[1], ARGV[2] })
  return { type(reply) == 'table' and table.concat(reply, '; ') or reply, table.concat(written, '; '), mgets }
end
return { outcome(function(redis, KEYS, ARGV) %s end), outcome(function(redis, KEYS, ARGV) %s end) }`

// Takes of one limit and cost, each alone on its key, are decided and stored as takes.lua does it.
func TestLoneTakesAreDecidedAsAllTakes(t *testing.T) {
	t.Parallel()
	part, err := os.ReadFile("lone.lua")
	if err != nil {
		t.Fatal(err)
	}
	without := strings.Replace(lua.Source(), string(part), "local decided, first_answers = 0, ''\n", 1)
	script := redis.NewScript(fmt.Sprintf(outcomes, lua.Source(), without))
	client := redistest.Start(t).Client()
	const cases = 6000
	decided := make(map[int]int) // by the number of takes
	for i := range cases {
		count := 1 + i%6
		keys, args := loneTakes(count)
		got, err := script.Run(t.Context(), client, keys, args...).Slice()
		if err != nil {
			t.Fatal(err)
		}
		a, b := got[0].([]any), got[1].([]any)
		if a[0] != b[0] || a[1] != b[1] {
			t.Fatalf("%q: got reply %q, written %v; without lone.lua %q, %v", args, a[0], a[1], b[0], b[1])
		}
		if general := a[2].(int64) - int64(min(count-1, 1)); general == 0 {
			decided[count]++
		}
	}
	for count, least := range map[int]int{1: cases / 6 / 3, 2: cases / 6 / 6, 6: cases / 6 / 40} {
		if decided[count] < least {
			t.Errorf("lone.lua decided %d of %d scripts with %d takes, want at least %d", decided[count], cases/6, count, least)
		}
	}
}

// loneTakes returns the keys of so many takes of one limit and cost; and their arguments, the clock, and the text and
// the TTL of each key.
func loneTakes(count int) (keys []string, args []any) {
	now := int64(1763729430000000)
	if rand.IntN(8) == 0 {
		now = 953472161722936 // has 15 digits
	}
	r, w := []int64{1, 3, 7}[rand.IntN(3)], below(13)
	if rand.IntN(4) == 0 {
		r, w = 999_983, 500*w
	}
	burst := below(4)
	limit := []byte([]string{"tb", "lb"}[rand.IntN(2)])
	for _, v := range []int64{r, w, burst, burst + rand.Int64N(burst+1), 0} {
		limit = binary.LittleEndian.AppendUint64(limit, math.Float64bits(float64(v)))
	}
	units := rand.Int64N(1 + min(3, burst))
	if rand.IntN(20) == 0 {
		units = burst + 1 // never fit
	}
	take := binary.LittleEndian.AppendUint32([]byte{byte(count), 0, 1, 0, 1, 0}, uint32(units))
	args = []any{append(limit, 0), take, now / 1_000_000, fmt.Sprintf("%06d", now%1_000_000)}
	for i := range count {
		text, ttl := loneState(now, r, w, burst)
		keys, args = append(keys, fmt.Sprint("key", i)), append(args, text, ttl)
	}
	return keys, args
}

// loneState returns the text and the TTL of a key.
func loneState(now, r, w, burst int64) (text string, ttl int64) {
	n, f := rand.Int64N(burst+2), rand.Int64N(2)*rand.Int64N(r)
	if burst > 1000 && rand.IntN(2) == 0 {
		n = 996 + rand.Int64N(5)
	}
	ago := min(rand.Int64N(1+2*(n+1)*(w/r+1))>>rand.IntN(20), now/2)
	text = fmt.Sprintf("%d:%d:%d", now-ago, n, f)
	if f == 0 && n <= 999 {
		text = fmt.Sprintf("%d%03d", now-ago, n)
	}
	switch rand.IntN(12) {
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
		}[rand.IntN(7)]
	case 5:
		text = "list"
	}
	ttl = []int64{rand.Int64N(20_000), 0, (n+1)*(w/r)/1000 - 5, (n+3)*(w/r)/1000 + 5}[rand.IntN(4)]
	return text, ttl
}

// below returns a number from 1 with at most so many digits. Each number of digits is equally likely.
func below(digits int) int64 { return 1 + rand.Int64N(int64(math.Pow10(1+rand.IntN(digits)))) }
