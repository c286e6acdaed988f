-- How a state (t, n, f) is stored in a string, and for how long; and what the
-- steps of algorithms have in common.
--
-- The short form is one integer, t * 1000 + n, of 19 digits: t has 16 digits
-- from 2001 to 2286, and n at most 3. Redis holds it in 8 bytes, and INCRBY can
-- change it. Every other state has the form t:n:f.
--
-- Example: 7 units at t = 1763729430000000 are stored as 1763729430000000007.
-- One unit drains, which moves t on by 500 000 µs, and a take adds 2. That adds
-- 500 000 * 1000 + 1: the script sends INCRBY 500000001.
--
-- A step is a table of functions, in the file of its algorithm. n units are in
-- use, t is an instant, and f is a bucket's fraction or the previous window of a
-- counter. All functions of a step take
--
--   (n, t, f, l, key, units, take)
--
-- and omit parameters at the end that they do not use. They return n, t, f. l is
-- the limit. take is nil or a table about the take: t, n and f of a receipt (the
-- state that the take left); id and last of takes that have ids; and stored_n,
-- stored_t and stored_f, the state before at.
--
--   at        returns the state now, and also whether it must be stored in any case.
--             A step that writes for itself takes a further argument, look: then
--             at writes nothing. Other functions but grant take a state that at
--             returned.
--
-- A step may omit these functions:
--
--   charge    adds units; by default to n.
--   grant     takes units off a state as it is stored; by default off n.
--   undo      takes off units of the take, if any are in use; by default off n.
--   used      returns the units that count against the burst, by default n.
--   full_at   returns when the state no longer matters; missing if the step
--             writes for itself.
--   renew     begins the hold of a take's units again.
--   instants  takes the cost for units; returns when it fits and when one unit
--             fits, 0 if it does or never will.
--   load(key) returns n, t, f, and whether a state is stored; or nil and the text
--             of an error. By default it reads a string.
--
-- The field told_apart says that takes have ids. The field spare says that save
-- may leave the key's TTL alone.

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
  if size <= 40 then
    local t, n, f = string.match(text, '^(%d+):(%d+):(%d+)$')
    t, n, f = tonumber(t), tonumber(n), tonumber(f)
    if t and max(t, n, f) < 9007199254740992 then
      return t, n, f
    end
  end
  return nil
end

-- A TTL is 2 ms longer than a state matters: format may cut off almost one, and
-- Redis may count from almost one before now. Redis deletes a key whose TTL is 0.
-- Callers' clocks may differ from each other and from the server's, so with them
-- a TTL has the tolerance in addition, and is a minute at least. No TTL is longer
-- than 100 years of 365 days, which is 3 153 600 000 000 ms.
local slack, least = 2, 2
if callers_clock then
  slack, least = 102, 60000
end

-- save stores a state that matters until full_at, under a limit; without full_at
-- the key keeps its TTL. text, t0 and n0 are the state as it was read, false if
-- none was. If none was, save returns the error of a key of another type, which
-- it leaves alone.
--
-- A key of a bucket that is used again lives longer than its state matters, by
-- the spare time of the limit: the time in which a full burst drains, at most ten
-- seconds. While such a key lives long enough, a write leaves its TTL alone and
-- adds the difference to its integer. That costs half of a SET with PX. A charge
-- that takes longer to drain than the spare time outlives the key, so save does
-- not ask for the TTL then.
--
-- The difference must be exact in doubles: (t - t0) * 1000 stays below 2^53 for
-- a t - t0 of up to 1e12. INCRBY refuses a text that is not an integer to
-- Redis.
local function save(key, text, t0, n0, n, t, f, full_at, l)
  local ms
  if full_at then
    local left, spare = (full_at - now) / 1000 + slack, l.spare
    if t0 and spare > 0 then
      if
        full_at - t0 - n0 * l.w / l.r <= spare and f == 0 and n <= 999 and #text == 19 and t >= t0 and t - t0 <= 1e12
        and call('PTTL', key) >= (left < least and least or left)
        and type(pcall('INCRBY', key, format('%d', (t - t0) * 1000 + n - n0))) == 'number'
      then
        return
      end
      left = left + spare / 1000
    end
    if left < least then
      left = least
    elseif left > 3153600000000 then
      left = 3153600000000
    end
    ms = format('%d', left)
  end
  local state
  if f == 0 and n <= 999 and t >= 1e15 then
    state = format('%d%03d', t, n)
  else
    state = format('%d:%d:%d', t, n, f)
  end
  if not ms then
    call('SET', key, state, 'KEEPTTL')
  elseif text then
    call('PSETEX', key, ms, state) -- Redis parses it faster than SET with PX
  elseif not call('SET', key, state, 'PX', ms, 'NX') then
    return pcall('GET', key).err
  end
end

-- expire is for steps that write for themselves. Several limits may charge a
-- key in one call: it lives for the slowest.
local expire
if steps.sl or steps.co then
  local lives = {} -- by key, in ms

  function expire(key, instant)
    lives[key] = max(lives[key] or least, min((instant - now) / 1000 + slack, 3153600000000))
    call('PEXPIRE', key, format('%d', lives[key]))
  end
end

-- less takes units off n. It is for settlements.
local less = settles and function(n, t, f, _, _, units)
  if n <= units then
    return 0, t, 0
  end
  return n - units, t, f
end
