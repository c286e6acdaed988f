-- The part of the library struct that the script uses, for servers whose Lua
-- lacks it, such as miniredis. It has little-endian formats, after '<', of B, H
-- and I4 (unsigned integers), c2 (text) and d (a double that is finite).
--
-- A double has 52 bits of mantissa, 11 of the exponent, and the sign. frexp and
-- ldexp keep all bits, so integers below 2^53 remain exact. The code treats
-- every double except 0 as normal.
--
-- Example: 1.5 is 0.75 * 2^1 by frexp. The exponent is stored as 1 + 1022 =
-- 1023, and the mantissa as (0.75 * 2 - 1) * 2^52 = 2^51.

local struct = rawget(_G, 'struct') -- reading struct would raise an error where it is missing

if not struct then
  local SIZES = { B = 1, H = 2, I = 4 }

  -- integer_of returns the unsigned integer in the bytes of a text.
  local function integer_of(text)
    local v = 0
    for i = #text, 1, -1 do
      v = v * 256 + text:byte(i)
    end
    return v
  end

  -- bytes_of is the inverse of integer_of.
  local function bytes_of(v, size)
    local bytes = {}
    for i = 1, size do
      bytes[i] = string.char(v % 256)
      v = math.floor(v / 256)
    end
    return table.concat(bytes)
  end

  local function double_of(text)
    local low, high = integer_of(text:sub(1, 6)), integer_of(text:sub(7))
    local sign = high < 32768 and 1 or -1
    if low == 0 and high % 32768 == 0 then
      return 0 * sign
    end
    local mantissa = low + (high % 16 + 16) * 2 ^ 48
    return sign * math.ldexp(mantissa, math.floor(high % 32768 / 16) - 1075)
  end

  local function bytes_of_double(v)
    local negative = v < 0 or 1 / v < 0
    local mantissa, exponent = math.frexp(math.abs(v))
    local low, high = 0, 0
    if v ~= 0 then
      mantissa = mantissa * 2 ^ 53 -- from 2^52 to 2^53
      low = mantissa % 2 ^ 48
      high = (mantissa - low) / 2 ^ 48 - 16 + (exponent + 1022) * 16
    end
    return bytes_of(low, 6) .. bytes_of(high + (negative and 32768 or 0), 2)
  end

  struct = {
    unpack = function(layout, text, pos)
      local values, count = {}, 0
      for kind, size in layout:gmatch('(%a)(%d*)') do
        size = kind == 'd' and 8 or SIZES[kind] or tonumber(size)
        local part = text:sub(pos, pos + size - 1)
        count, pos = count + 1, pos + size
        values[count] = kind == 'c' and part or kind == 'd' and double_of(part) or integer_of(part)
      end
      values[count + 1] = pos
      return unpack(values, 1, count + 1)
    end,
    pack = function(layout, ...)
      local parts, values = {}, { ... }
      for kind in layout:gmatch('%a') do
        local v = values[#parts + 1]
        parts[#parts + 1] = kind == 'd' and bytes_of_double(v) or bytes_of(v, SIZES[kind])
      end
      return table.concat(parts)
    end,
  }
end
