package lua_test

import (
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/penstock-go/penstock/internal/redistest"
)

// Both pack and unpack each of ARGV with the library and with its replacement, and return the first that differs.
const compareStructs = `
for i = 1, #ARGV do
  local v = tonumber(ARGV[i])
  local n = math.floor(math.abs(v)) % 2 ^ 32
  local text = library.pack('<dBHI4', v, n % 2 ^ 8, n % 2 ^ 16, n)
  if struct.pack('<dBHI4', v, n % 2 ^ 8, n % 2 ^ 16, n) ~= text then
    return ARGV[i] .. ' is packed otherwise'
  end
  text = 'xtb' .. text
  local a, b = { library.unpack('<c2dBHI4', text, 2) }, { struct.unpack('<c2dBHI4', text, 2) }
  for j = 1, 6 do
    if a[j] ~= b[j] or v == 0 and 1 / a[2] ~= 1 / b[2] then
      return ARGV[i] .. ' is unpacked otherwise'
    end
  end
end
return 'alike'`

// Where the library struct is missing, its replacement packs and unpacks every finite double alike.
func TestStructIsReplacedExactly(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("struct.lua")
	if err != nil {
		t.Fatal(err)
	}
	values := []float64{
		0, math.Copysign(0, -1), 1, 255, 256, 65535, 1<<32 - 1, 1 << 32, 1<<53 - 1, 1 << 53, 1<<63 - 1, -1, -1<<53 + 1,
		0.1, -0.1, 1.0 / 3, 86400e6 / 7, math.MaxFloat64, -math.MaxFloat64, 0x1p-1022, 0x1p-1000,
	}
	for range 2000 {
		values = append(values, float64(rand.Int64N(1<<53)>>rand.IntN(53)), rand.NormFloat64(), math.Ldexp(rand.Float64(), rand.IntN(2000)-1000))
	}
	var args []any
	for _, v := range values {
		args = append(args, strconv.FormatFloat(v, 'g', 17, 64))
	}
	script := "local library, rawget = struct, function() end\n" + string(source) + compareStructs
	got, err := redistest.Start(t).Client().Eval(t.Context(), script, nil, args...).Text()
	if err != nil || got != "alike" {
		t.Errorf("got %q, %v; want alike", got, err)
	}
}
