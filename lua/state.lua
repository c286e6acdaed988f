-- How a state (t, n, f) is stored in a string, and for how long; and what the
-- steps of algorithms have in common.
--
-- The short form is one integer, t * 1000 + n, of 19 digits: t has 16 digits
-- from 2001 to 2286, and n at most 3. Redis holds it in 8 bytes, and INCRBY can
-- change it. Its sign says how long the key lives, as save explains. Every other
-- state has the form t:n:f.
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
-- The field told_apart says that takes have ids. The field spare says that the
-- key lives longer than its state matters.

-- decode returns nil if the text does not parse. In the short form it only
-- tests that the 16 characters before n are a number of 16 digits before the
-- point: there is no room for a fraction. Searching them for a character that
-- is not a digit takes twice as long. '0' is byte 48, so the bytes of n's three
-- digits carry 48 * 100 + 48 * 10 + 48 = 5328 too much. '-' is byte 45.
local function decode(text)
  local size = #text
  if size == 19 or size == 20 and byte(text) == 45 then
    local t, x, y, z = tonumber(sub(text, -19, -4)), byte(text, -3, -1)
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
-- a TTL has the tolerance in addition, and is a minute at least when it is set.
-- No TTL is longer than 100 years of 365 days, which is 3 153 600 000 000 ms.
local slack, least = 2, 2
if callers_clock then
  slack, least = 102, 60000
end

-- save stores a state that matters until full_at, under a limit; without full_at
-- the key keeps its TTL. text, t0 and n0 are the state as it was read, false if
-- none was. If none was, save returns the error of a key of another type, which
-- it leaves alone.
--
-- Most writes leave the TTL alone, and add the difference to the integer. That
-- costs less than half of a SET with PX. It requires that the key lives long enough,
-- which the state itself tells. Time is divided into spans, and
--
--   a key with a positive integer lives to the end of the span of its full_at.
--
-- So a new state may be added if it is full within the span of the old one. A span
-- is the spare time of the limit: a bucket's time to drain, at most ten seconds; of
-- windows 1 µs, because full_at is their end. It is whole, so % is exact. A negative integer says nothing of
-- the TTL. A new key of a bucket has one, so that a key that is used once does not
-- outlive its state. Many keys would expire at once, when a span ends. So a key
-- lives longer by the time for which the present span has lasted.
--
-- Example: 100 per minute has spans of 10 s. At 4 s a third unit is in use, and
-- the bucket is full at 5.8 s. PSETEX lets the key live until the end of the span, at
-- 10 s, and 4 s longer. Then a take adds to the integer if the bucket is full
-- before 10 s.
--
-- After a change of the limit, lower or higher, the old state has another full_at
-- and span than when it was written. So the key may expire when the old limit would
-- be full. It does so once at most: the key that a later take makes has the new limit.
--
-- The difference must be exact in doubles: (t - t0) * 1000 stays below 2^53 for
-- a t - t0 of up to 1e12. INCRBY refuses a text that is not an integer to
-- Redis.
local function save(key, text, t0, n0, n, t, f, full_at, l)
  local short, ms = '-%d%03d', nil
  if full_at then
    local spare, left = l.spare, full_at - now
    if text or not l.step.spare then
      if t0 and #text == 19 and f == 0 and n <= 999 and t >= t0 and t - t0 <= 1e12 then
        local full0 = l.step.full_at(n0, t0, 0, l)
        if full_at < full0 - full0 % spare + spare
          and type(pcall('INCRBY', key, format('%d', (t - t0) * 1000 + n - n0))) == 'number'
        then
          return
        end
      end
      short, left = '%d%03d', left - full_at % spare + spare + now % spare
    end
    ms = format('%d', max(least, min(left / 1000 + slack, 3153600000000)))
  end
  local state
  if f == 0 and n <= 999 and t >= 1e15 then
    state = format(short, t, n)
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
