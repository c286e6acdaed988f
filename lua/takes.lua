-- Takes from buckets, each of a caller of its own: most checks are. They are
-- decided before any function is made that they do not need, with as few
-- commands as there can be. Twin: algorithms/token_bucket.go.

-- drained returns how many units, at most limit, had time to drain between
-- t + f/r and now (> t), and whether exactly that many.
local function drained(t, f, limit, l)
  local r, w = l.r, l.w
  local parts = (now - t) * r -- w of them are a unit
  if parts < EXACT then
    parts = parts - f
    local rest = parts % w
    local k = (parts - rest) / w
    if k > limit then
      return limit, false
    end
    return k, rest == 0
  end
  -- The quotient of doubles is off by one at the most; the check against the
  -- exact instants corrects it.
  local a, b, floor = l.a, l.b, math.floor
  local k = floor((now - t - f / r) * r / w)
  if k > limit then
    k = limit
  end
  parts = f + k * b
  local whole = floor(parts / r)
  local at, rest = t + k * a + whole, parts - whole * r
  if at > now or (at == now and rest > 0) then
    return k - 1, false
  end
  if k < limit then
    parts = f + (k + 1) * b
    whole = floor(parts / r)
    local next_at, next_rest = t + (k + 1) * a + whole, parts - whole * r
    if next_at < now or (next_at == now and next_rest == 0) then
      return k + 1, next_at == now
    end
  end
  return k, at == now and rest == 0
end

-- bucket_at brings a bucket's state to now; it also returns whether to store
-- the result in any case.
local function bucket_at(n, t, f, l)
  local r, w = l.r, l.w
  if n > l.cap then
    n = l.cap
  end
  if f >= r then
    f = r - 1
  end
  if n == 0 then
    return 0, now, 0, false
  end
  if t > now + TOLERANCE then
    return n, now, 0, true
  end
  if t >= now then
    return n, t, f, false
  end
  local parts = (now - t) * r
  if parts < EXACT then -- and so was not rounded
    parts = parts - f
    local rest = parts % w -- has drained of the next unit
    n = n - (parts - rest) / w
    if n <= 0 then
      return 0, now, 0, false
    end
    f = -rest % r
    return n, now - (rest + f) / r, f, false
  end
  local k = drained(t, f, n, l)
  if k == n then
    return 0, now, 0, false
  end
  f = f + k * l.b
  local carry = f % r
  return n - k, t + k * l.a + (f - carry) / r, carry, false
end

-- SPARE is by how many µs the key of a bucket that is used again may outlive
-- what it has to say, unless a slower limit made it live longer. With some to
-- spare, most takes leave the TTL as it is, and add to the number that Redis
-- holds: that costs half of a SET with PX.
local SPARE = 10000000

-- add writes a state as the difference to t0 and n0, which were read from v, and
-- reports whether it could.
local function add(key, v, t0, n0, t, n, f, full_at)
  if #v ~= 19 or f > 0 or n > 999 or t >= 1e16 or t - t0 > 1e12 or t0 - t > 1e12 then
    return false -- no such number, or a difference that doubles do not hold
  end
  if call('PTTL', key) < milliseconds(full_at) then
    return false
  end
  return type(pcall('INCRBY', key, format('%d', (t - t0) * 1000 + n - n0))) == 'number'
end

local replies, errors, replied = { pack('<d', now) }, { '' }, 1

if ARGV[3] ~= '' then
  local takes = ARGV[3]
  local count, pos = unpack('<H', takes, 1)
  local values = call('MGET', spread(KEYS, 1, count))
  local i, size = 0, #takes
  while pos <= size do
    local keys, times, index, units
    keys, times, index, units, pos = unpack('<HHHI4', takes, pos)
    local l = limits[index]
    local r, w, burst = l.r, l.w, l.burst
    for _ = 1, keys do
      i = i + 1
      local key, v, failure = KEYS[i], values[i], nil
      if not v then
        v = pcall('GET', key) -- MGET does not tell a key of another type from none
        if v then
          failure = v.err
        end
      end
      if failure then
        for _ = 1, times do
          replied = replied + 1
          replies[replied], errors[#errors + 1] = '\1', failure
        end
      else
        local missing, write, t, n, f, t0, n0 = 2, false
        if v then
          t, n, f = decode(v)
          t0, n0 = t, n
        end
        if t and (n > 0 or f > 0) then
          missing = 0
          n, t, f, write = bucket_at(n, t, f, l)
        else
          n, t, f = 0, now, 0
        end
        for _ = 1, times do
          local verdict = missing
          if n + units <= burst then
            verdict = verdict + 1
            if units > 0 then
              n, verdict, missing, write = n + units, verdict + 4, 0, true
            end
          end
          replied = replied + 1
          replies[replied] = pack('<BBI4ddd', 0, verdict, n, t, f, 0)
        end
        if write then
          local full_at = t + (n * w + f) / r
          if not t0 then
            call('SET', key, encode(t, n, f), 'PX', lifetime(full_at))
          elseif not add(key, v, t0, n0, t, n, f, full_at) then
            call('SET', key, encode(t, n, f), 'PX', lifetime(full_at + math.min(burst * w / r, SPARE)))
          end
        end
      end
    end
  end
end

if ARGV[4] == '' then
  errors[1] = table.concat(replies)
  return errors
end
