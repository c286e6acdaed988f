-- The functions of a step, and functions that several algorithms share.
--
-- The file of an algorithm puts a function into makers, by the algorithm's tag.
-- It returns a new step: a table of functions. Every function costs time to
-- make, so a call makes only the steps that it needs. One step may serve
-- several keys and limits.
--
-- A state is n, t, f, past: n units are in use, t is an instant, and f is a
-- bucket's fraction or the previous window of a counter. Most states have no
-- past (nil). All functions of a step take
--
--   (n, t, f, past, l, key, units, take)
--
-- and omit parameters at the end that they do not use. They return n, t, f,
-- past. l is the limit. take is nil or a table about the take: t, n, f, at,
-- era, shift, r and w of a receipt (the state that the take left, when, and the
-- rate); id and last of takes that have ids; and stored_n, stored_t, stored_f
-- and stored_past, the state before at.
--
--   at        returns the state now, and also whether it must be stored in any case.
--             All other functions take a state that at returned.
--   undo      takes off units of the take, if they still count.
--
-- A step may omit these functions:
--
--   charge    adds units that fit, or that a force has cut to the cap. By
--             default they are added to n.
--   grant     takes off units that an operator grants, by default from n.
--   used      returns the units that count against the burst, by default n.
--   full_at   returns when the state no longer matters; missing if the step
--             writes for itself.
--   backfill  adds as many units as fit, as of the instant take.at.
--   renew     begins the hold of a take's units again.
--   instants  takes the cost for units; returns when it fits and when one unit
--             fits, 0 if it does or never will.
--   load(key) returns n, t, f, past, whether a state is stored, and the text of a
--             string; or nil and the text of an error. By default it reads a
--             string.
--
-- The field told_apart says that takes have ids. The field spare says that the
-- key may have time to spare, which save uses.

local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min

local function load_string(key)
  local text = pcall('GET', key)
  if not text then
    return 0, 0, 0, nil, false
  end
  if type(text) == 'table' then
    return nil, text.err
  end
  local t, n, f, past = decode(text)
  if not t or (n == 0 and f == 0 and not past) then
    return 0, 0, 0, nil, false
  end
  return n, t, f, past, true, text
end

-- new_era returns the past of a state whose units are forgotten at an instant.
local function new_era(past, instant)
  return past_of(0, next_era(past, instant), 0, 0, 0)
end

-- lowered returns at most limit units, at most limit units in the window before,
-- and the past: it begins an era if there were more.
local function lowered(n, f, past, limit)
  if n > limit or f > limit then
    return min(n, limit), min(f, limit), new_era(past, now)
  end
  return n, f, past
end

-- stepped_back returns the instant at which to judge a state that was written
-- at t, and whether the clock must have stepped back since. The state keeps its
-- units.
local function stepped_back(t)
  if t > now + TOLERANCE then
    return now, true
  end
  return t, false
end

-- expire is for steps that write for themselves. Several limits may charge a
-- key in one call: it lives for the slowest.
local lives = {} -- by key

local function expire(key, instant)
  lives[key] = max(lives[key] or 0, instant)
  call('PEXPIRE', key, format('%d', milliseconds(lives[key])))
end
