-- How a state (t, n, f, past) is stored in a string, and for how long.
--
-- The short form is one integer, t * 1000 + n, of 19 digits: t has 16 digits
-- from 2001 to 2286, and n at most 3. Redis holds it in 8 bytes, and INCRBY can
-- change it. Every other state has the form t:n:f, t:n:f:last:era, or
-- t:n:f:last:era:shift:r:w.
--
-- Example: 7 units at t = 1763729430000000 are stored as 1763729430000000007.
-- One unit drains, which moves t on by 500 000 µs, and a take adds 2. That adds
-- 500 000 * 1000 + 1: the script sends INCRBY 500000001.
--
-- Few states have a past: a table of the fields after f. Without one they are
-- 0:
--
--   last    buckets: the instant of the last charge, if it came long after t
--   era     the instant at which the units before it were forgotten
--   r, w    the rate of a bucket whose charges may be returned, or that is mixed:
--           units were taken off in another order than last in, first out; 0 if
--           it is not noted
--   shift   of a bucket that is mixed: the µs by which t has left the instants at
--           which it drained, modulo w; of a bucket that is not: w
--
-- decode and encode use the order of the text. All other functions take n, t,
-- f, past. No function changes a past.

-- Constants are in the functions that use them. Outside, each would be one more
-- variable that a function has to capture, in every call.

-- past_of returns the past with these parts, nil if there is none.
local function past_of(last, era, shift, r, w)
  if last > 0 or era > 0 or r > 0 then
    return { last = last, era = era, shift = shift, r = r, w = w }
  end
  return nil
end

local function era_of(past)
  return past and past.era or 0
end

-- next_era returns the era that begins at an instant. Receipts of an earlier
-- era give nothing back. Each era of a key has an instant of its own.
local function next_era(past, instant)
  if past and past.era >= instant then
    return past.era + (past.era < EXACT - 1 and 1 or 0)
  end
  return instant
end

-- unchanged reports whether the state that is stored is as the take left it.
local function unchanged(take)
  local past = take.stored_past
  return take.stored_n == take.n and take.stored_t == take.t and take.stored_f == take.f
    and not (past and past.shift < past.w and past.last ~= take.at)
end

local function encode(t, n, f, past)
  if past and past.r > 0 then
    return format('%d:%d:%d:%d:%d:%d:%d:%d', t, n, f, past.last, past.era, past.shift, past.r, past.w)
  elseif past then
    return format('%d:%d:%d:%d:%d', t, n, f, past.last, past.era)
  end
  if f == 0 and n <= 999 and t >= 1e15 and t < 1e16 then
    return format('%d%03d', t, n)
  end
  return format('%d:%d:%d', t, n, f)
end

-- decode returns nil if the text does not parse. In the short form it only
-- tests that the first 16 characters are a number of 16 digits before the
-- point: there is no room for a fraction. Searching them for a character that
-- is not a digit takes twice as long. '0' is byte 48, so the bytes of n's three
-- digits carry 48 * 100 + 48 * 10 + 48 = 5328 too much.
local function decode(text)
  local size = #text
  if size == 19 then
    local t, x, y, z = tonumber(sub(text, 1, 16)), byte(text, 17, 19)
    if t and t >= 1e15 and t < 1e16 and x >= 48 and x <= 57 and y >= 48 and y <= 57 and z >= 48 and z <= 57 then
      return t, x * 100 + y * 10 + z - 5328, 0
    end
  end
  if size > 140 then
    return nil
  end
  local t, n, f, more = match(text, '^(%d+):(%d+):(%d+)(.*)$')
  t, n, f = tonumber(t), tonumber(n), tonumber(f)
  if not t or t >= EXACT or n >= EXACT or f >= EXACT then
    return nil
  end
  if more == '' and size <= 40 then
    return t, n, f
  end
  local last, era, mix = match(more, '^:(%d+):(%d+)(.*)$')
  last, era = tonumber(last), tonumber(era)
  if not last or last >= EXACT or era >= EXACT then
    return nil
  end
  if mix == '' and size <= 80 then
    return t, n, f, past_of(last, era, 0, 0, 0)
  end
  local shift, r, w = match(mix, '^:(%d+):(%d+):(%d+)$')
  shift, r, w = tonumber(shift), tonumber(r), tonumber(w)
  if shift and shift < EXACT and r < EXACT and w < EXACT then
    return t, n, f, past_of(last, era, shift, r, w)
  end
  return nil
end

-- milliseconds returns the least TTL of a state that matters until an instant.
-- It adds 2 ms: format may cut off almost one, and Redis may count from almost
-- one before now. Redis deletes a key whose TTL is 0.
local function milliseconds(instant)
  local CENTURY = 3153600000000000 -- of 365 days, in µs
  local CALLER_CLOCK_TTL = 60000 -- ms
  local left = instant - now
  if left < 0 then
    left = 0
  elseif left > CENTURY then
    left = CENTURY
  end
  local ms = left / 1000 + 2
  if callers_clock then
    -- Callers' clocks may differ from each other and from the server's.
    ms = ms + TOLERANCE / 1000
    if ms < CALLER_CLOCK_TTL then
      ms = CALLER_CLOCK_TTL
    end
  end
  return ms
end

-- save stores a state that matters until full_at, under a limit.
--
-- A key lives until then. A key with an era or a noted rate lives no shorter
-- than before, because receipts of another era or rate may still come. A key with spare time lives
-- longer: then save receives t0 and n0, which were read from a text. Spare time
-- is the time in which a full burst drains, at most ten seconds. While such a
-- key lives long enough, a write leaves its TTL alone and adds the difference
-- to its integer. That costs half of a SET with PX.
--
-- The difference must be exact in doubles: (t - t0) * 1000 stays below 2^53 for
-- a t - t0 of up to 1e12. INCRBY refuses a text that is not an integer to
-- Redis.
local function save(key, text, t0, n0, n, t, f, past, full_at, l)
  if t0 then
    if
      #text == 19 and not past and f == 0 and n <= 999 and t >= 1e15 and t < 1e16
      and t - t0 <= 1e12 and t0 - t <= 1e12
      and call('PTTL', key) >= milliseconds(full_at)
      and type(pcall('INCRBY', key, format('%d', (t - t0) * 1000 + n - n0))) == 'number'
    then
      return
    end
    local spare = l.burst * l.w / l.r
    full_at = full_at + (spare < 10000000 and spare or 10000000)
  end
  local ms = milliseconds(full_at)
  if past and (past.era > 0 or past.r > 0) then
    local lives = call('PTTL', key)
    ms = ms > lives and ms or lives
  end
  call('SET', key, encode(t, n, f, past), 'PX', format('%d', ms))
end
