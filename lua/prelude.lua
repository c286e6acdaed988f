-- One decision for any number of checks, as one atomic step.
--
-- KEYS    the distinct keys of the call, all in one Cluster slot
-- ARGV[1] the clock in µs since the Unix epoch; empty: the server's TIME
-- ARGV[2] the distinct limits, packed:
--         row B, then doubles: r, w, a, b, burst, cap, window (µs); of calendars
--         turns of periods in the place of r, w, a, b and window
-- ARGV[3] takes from buckets, packed: keys H, and then, for the next so many
--         keys: keys H, takes of each H, limit H, cost I4
-- ARGV[4] groups of other checks, packed: count H, takes denied elsewhere H,
--         and per check: op B, key H, limit H, cost I4;
--         of trial-instead: the take to leave out H (its place in the group,
--         0 one elsewhere that is allowed, 65535 one elsewhere that is denied)
--         of return, renew and backfill: the receipt's t d, n I4, f d, and the take's
--         instant d;
--         of concurrent requests: the take's id d
-- Returns {answers, error...}; answers, packed: now d, then per take and then
--         per group a status B: 0, and per check v B, n I4, t d, f d, u d; or
--         1, and its error is the next of those that follow.
--         v: 1 allowed, 2 no state was stored, 4 charged.
--
-- Times are µs, quantities are units, and every number is an integer below
-- 2^53, which doubles hold exactly. Never tostring() or .. a number: they keep
-- 14 digits.

local call, pcall = redis.call, redis.pcall
local format, match, sub, byte = string.format, string.match, string.sub, string.byte
local unpack, pack, spread = struct.unpack, struct.pack, unpack

-- How far a stored instant may lie ahead of the clock before the clock is
-- taken to have stepped back.
local TOLERANCE = 100000

local EXACT = 9007199254740992 -- 2^53
local CENTURY = 3153600000000000 -- of 365 days, in µs
local CALLER_CLOCK_TTL = 60000 -- ms

local now, callers_clock

if ARGV[1] == '' then
  local time = call('TIME') -- once: before 7.2 it moves on within a script
  now = time[1] * 1000000 + time[2]
else
  now, callers_clock = tonumber(ARGV[1]), true
end

local limits = {}
do
  local pos, size, count = 1, #ARGV[2], 0
  while pos <= size do
    local row, r, w, a, b, burst, cap, window
    row, r, w, a, b, burst, cap, window, pos = unpack('<Bddddddd', ARGV[2], pos)
    count = count + 1
    limits[count] = {
      row = row, r = r, w = w, a = a, b = b, burst = burst, cap = cap, window = window, step = false,
    }
  end
end

-- encode writes a state. Up to 999 units at a 16-digit instant are 19 digits,
-- which Redis keeps as an integer.
local function encode(t, n, f)
  if f == 0 and n <= 999 and t >= 1e15 and t < 1e16 then
    return format('%d%03d', t, n)
  end
  return format('%d:%d:%d', t, n, f)
end

-- decode reads a state; nil if it does not parse. Of the first 16 characters
-- it asks only for a number of 16 digits before the point, which leaves no room
-- for a fraction: to search them all for what is no digit takes twice as long.
local function decode(v)
  local size = #v
  if size == 19 then
    local t, x, y, z = tonumber(sub(v, 1, 16)), byte(v, 17, 19)
    if t and t >= 1e15 and t < 1e16 and x >= 48 and x <= 57 and y >= 48 and y <= 57 and z >= 48 and z <= 57 then
      return t, x * 100 + y * 10 + z - 5328, 0
    end
  end
  if size > 40 then
    return nil
  end
  local t, n, f = match(v, '^(%d+):(%d+):(%d+)$')
  t, n, f = tonumber(t), tonumber(n), tonumber(f)
  if t and t < EXACT and n < EXACT and f < EXACT then
    return t, n, f
  end
  return nil
end

-- milliseconds is the least TTL of a state that says nothing from an instant on.
local function milliseconds(instant)
  local left = instant - now
  if left < 0 then
    left = 0 -- a TTL of 0 deletes
  elseif left > CENTURY then
    left = CENTURY
  end
  local ms = left / 1000 + 2 -- of which format cuts the fraction off
  if callers_clock then
    -- Callers' clocks may differ from each other and from the server's.
    ms = ms + TOLERANCE / 1000
    if ms < CALLER_CLOCK_TTL then
      ms = CALLER_CLOCK_TTL
    end
  end
  return ms
end

local function lifetime(instant)
  return format('%d', milliseconds(instant))
end
