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

// Both scripts see the same server: one key, its TTL and the clock. outcome returns the reply and what was written.
const outcomes = `
local text, ttl, clock = ARGV[3], tonumber(ARGV[4]), { ARGV[5], ARGV[6] }
local function outcome(script)
  local written, general = 'nothing', 'lone'
  local function command(name, _, a, b, c)
    if name == 'TIME' then
      return clock
    elseif name == 'GET' then
      return text == 'list' and { err = 'WRONGTYPE' } or text ~= '' and text
    elseif name == 'MGET' then
      general = 'general'
      return { text ~= 'list' and text ~= '' and text }
    elseif name == 'PTTL' then
      return ttl
    elseif name == 'INCRBY' then
      if not string.find(text, '^%%d+$') then
        return { err = 'ERR value is not an integer or out of range' }
      end
      written = 'added ' .. a
      return 1
    elseif name == 'PSETEX' then
      written = b .. ' for ' .. a .. ' ms'
    elseif name == 'SET' and text ~= 'list' then
      written = a .. ' for ' .. c .. ' ms'
      return { ok = 'OK' }
    end
    return false
  end
  local reply = script({ call = command, pcall = command }, { 'key' }, { ARGV[1], ARGV[2] })
  return { type(reply) == 'table' and table.concat(reply, '; ') or reply, written, general }
end
return { outcome(function(redis, KEYS, ARGV) %s end), outcome(function(redis, KEYS, ARGV) %s end) }`

// A take that is alone in its script is decided and stored as takes.lua does it.
func TestLoneTakesAreDecidedAsAllTakes(t *testing.T) {
	t.Parallel()
	part, err := os.ReadFile("lone.lua")
	if err != nil {
		t.Fatal(err)
	}
	without := strings.Replace(lua.Source(), string(part), "", 1)
	script := redis.NewScript(fmt.Sprintf(outcomes, lua.Source(), without))
	client := redistest.Start(t).Client()
	lone := 0
	const cases = 4000
	for range cases {
		args := loneTake()
		got, err := script.Run(t.Context(), client, nil, args...).Slice()
		if err != nil {
			t.Fatal(err)
		}
		a, b := got[0].([]any), got[1].([]any)
		if a[0] != b[0] || a[1] != b[1] {
			t.Fatalf("%q: got reply %q, written %v; without lone.lua %q, %v", args, a[0], a[1], b[0], b[1])
		}
		if a[2] == "lone" {
			lone++
		}
	}
	if lone < cases/3 {
		t.Errorf("lone.lua decided %d of %d takes, want at least a third", lone, cases)
	}
}

// loneTake returns the arguments of a lone take, then the text and the TTL of its key, and the clock.
func loneTake() []any {
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
	take := binary.LittleEndian.AppendUint32([]byte{1, 0, 1, 0, 1, 0}, uint32(rand.Int64N(1+min(3, burst))))

	n, f := rand.Int64N(burst+2), rand.Int64N(2)*rand.Int64N(r)
	if burst > 1000 && rand.IntN(2) == 0 {
		n = 996 + rand.Int64N(5)
	}
	ago := min(rand.Int64N(1+2*(n+1)*(w/r+1))>>rand.IntN(20), now/2)
	text := fmt.Sprintf("%d:%d:%d", now-ago, n, f)
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
			"list", "1", "no state at all", "1e15            007", "17637294300000:7:0", "1763729400000000.07", "-763729400000000007", "17637294:1:2:3",
		}[rand.IntN(8)]
	}
	ttl := []int64{rand.Int64N(20_000), 0, (n+1)*(w/r)/1000 - 5, (n+3)*(w/r)/1000 + 5}[rand.IntN(4)]
	return []any{append(limit, 0), take, text, ttl, now / 1_000_000, fmt.Sprintf("%06d", now%1_000_000)}
}

// below returns a number from 1 with at most so many digits. Each number of digits is equally likely.
func below(digits int) int64 { return 1 + rand.Int64N(int64(math.Pow10(1+rand.IntN(digits)))) }
