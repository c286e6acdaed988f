-- What the steps of the algorithms share.

local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min

-- The files of the algorithms each define a function that makes a step. A call
-- makes those that it needs, since every function costs to make:
--   load(key) -> n, t, f, exists; or nil and an error text
--   at(n, t, f, l, key) -> n, t, f at now, and whether to store them in any case
--   used(n, t, f, l) -> what counts against the burst
--   charge, force, grant(n, t, f, units, key, l, id) -> n, t, f
--   renew(n, t, f, receipt's t, n, f; l, key) -> n, t, f; nil if takes do not end
--   backfill(n, t, f, units, l, key, instant) -> n, t, f
--   undo(stored n, t, f; n, t, f; units; receipt's t, n, f; l, key; the take's
--   instant) -> n, t, f
--   full_at(n, t, f, l) -> when the state says nothing any more; nil if the
--   step writes for itself
--   instants(n, t, need, l, key) -> f, u of an answer; nil: f, 0

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
