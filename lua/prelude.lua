-- One decision for any number of checks, as one atomic step.
--
-- KEYS    the distinct keys of the call, all in one Cluster slot
-- ARGV[1] the clock in µs since the Unix epoch; empty: the server's TIME
-- ARGV[2] the distinct limits, packed:
--         row B, then doubles: r, w, a, b, burst, cap, window (µs)
-- ARGV[3] groups of checks, packed: count H, takes denied elsewhere H, and per
--         check: op B, key H, limit H, cost I4;
--         of trial-instead: the take to leave out H (its place in the group,
--         0 one elsewhere that is allowed, 65535 one elsewhere that is denied)
--         of return: the receipt's t d, n I4, f d, and the take's instant d
-- ARGV[4] not empty if every group is one take, and the i-th key is the i-th
--         group's alone
-- Returns {answers, error...}; answers, packed: now d, then per group a status
--         B: 0, and per check v B, n I4, t d, f d, u d; or 1, and the group's
--         error is the next of those that follow.
--         v: 1 allowed, 2 no state was stored, 4 charged.
--
-- Times are µs, quantities are units, and every number is an integer below
-- 2^53, which doubles hold exactly. Never tostring() or .. a number: they keep
-- 14 digits.

local call, pcall = redis.call, redis.pcall
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local format, match, find, sub = string.format, string.match, string.find, string.sub
local unpack, pack = struct.unpack, struct.pack

local TAKE, TRIAL_INSTEAD, RETURN, FORCE, GRANT, RESET = 0, 2, 3, 4, 5, 6 -- trial is 1

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

-- The files of the algorithms each define a function that makes a step. A call
-- makes those that it needs, since every function costs to make:
--   load(key) -> n, t, f, exists; or nil and an error text
--   at(n, t, f, l, key) -> n, t, f at now, and whether to store them in any case
--   used(n, t, f, l) -> what counts against the burst
--   charge, force, grant(n, t, f, units, key, l) -> n, t, f
--   undo(stored n, t, f; n, t, f; units; receipt's t, n, f; l, key; the take's
--   instant) -> n, t, f
--   full_at(n, t, f, l) -> when the state says nothing any more; nil if the
--   step writes for itself
--   instants(n, t, need, l, key) -> f, u of an answer; nil: f, 0

-- encode writes a state. Up to 999 units at a 16-digit instant are 19 digits,
-- which Redis keeps as an integer.
local function encode(t, n, f)
  if f == 0 and n <= 999 and t >= 1e15 and t < 1e16 then
    return format('%.0f%03.0f', t, n)
  end
  return format('%.0f:%.0f:%.0f', t, n, f)
end

-- decode reads a state; nil if it does not parse.
local function decode(v)
  local size = #v
  if size == 19 and not find(v, '%D') then
    return tonumber(sub(v, 1, 16)), tonumber(sub(v, 17)), 0
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

-- lifetime is the TTL in ms of a state that says nothing from an instant on.
local function lifetime(instant)
  local left = instant - now
  if left < 1 then
    left = 1 -- a TTL of 0 deletes
  elseif left > CENTURY then
    left = CENTURY
  end
  local ms = ceil(left / 1000) + 1
  if callers_clock then
    -- Callers' clocks may differ from each other and from the server's.
    ms = max(ms + TOLERANCE / 1000, CALLER_CLOCK_TTL)
  end
  return format('%.0f', ms)
end

local function load_string(key)
  local v = pcall('GET', key)
  if not v then
    return 0, 0, 0, false
  end
  if type(v) == 'table' then
    return nil, v.err
  end
  local t, n, f = decode(v)
  if not t or (n == 0 and f == 0) then
    return 0, 0, 0, false
  end
  return n, t, f, true
end

local function units_used(n)
  return n
end

local function charge_units(n, t, f, units)
  return n + units, t, f
end

local function force_units(n, t, f, units, _, l)
  return min(n + units, max(n, l.cap)), t, f
end

local function grant_units(n, t, f, units)
  return max(0, n - units), t, f
end

-- stepped_back returns the instant at which a state written at t is judged,
-- and whether the clock must have stepped back since. Its units are kept.
local function stepped_back(t)
  if t > now + TOLERANCE then
    return now, true
  end
  return t, false
end
