-- Sliding window log. State: a list; first a header (t, n): the newest entry's
-- instant and the sum of units, then one entry (instant, units) per admission,
-- oldest first. Between calls of a step, f is the oldest entry's instant.
-- The list is changed at once rather than saved at the end.
-- Twin: algorithms/sliding_window_log.go.

local function sliding_window_log()
  local CHUNK = 128
  local GONE = 'x' -- marks entries to be removed

  local unparsable = {} -- by key: a list is stored, but says nothing

  local function log_load(key)
    local head = pcall('LRANGE', key, 0, 1)
    if head.err then
      return nil, head.err
    end
    if not head[1] then
      return 0, 0, 0, false
    end
    local t, n = decode(head[1])
    local oldest = head[2] and decode(head[2])
    if not t or n == 0 or not oldest then
      unparsable[key] = true
      return 0, 0, 0, false
    end
    return n, t, oldest, true
  end

  local function log_drop(key)
    call('DEL', key)
    return 0, now, 0, true
  end

  local function log_expire(key, t, l)
    call('PEXPIRE', key, lifetime(t + l.window))
  end

  -- units_of returns the units of an entry; nil if it does not parse.
  local function units_of(entry)
    if #entry == 19 then -- decode without the instant
      local x, y, z = byte(entry, 17, 19)
      return x * 100 + y * 10 + z - 5328
    end
    local _, units = decode(entry)
    return units
  end

  -- log_after returns the index of the first entry after an instant, of those
  -- from low to high - 1; else high. Entries that do not parse have no instant,
  -- and the oldest they could have.
  local function log_after(key, instant, low, high)
    while low < high do
      local middle = floor((low + high) / 2)
      if (decode(call('LINDEX', key, middle)) or 0) > instant then
        high = middle
      else
        low = middle + 1
      end
    end
    return low
  end

  -- log_units returns the sum of the entries from an index on, given that of
  -- all. It reads the fewer of those from there on and those before.
  local function log_units(key, n, first, size)
    if size - 1 == n then -- every entry is one unit
      return size - first
    end
    local from, to, sum = first, size - 1, 0
    local before = first - 1 < size - first
    if before then
      from, to = 1, first - 1
    end
    for index = from, to, CHUNK do
      local chunk = call('LRANGE', key, index, min(index + CHUNK - 1, to))
      for i = 1, #chunk do
        sum = sum + (units_of(chunk[i]) or 0)
      end
    end
    return before and n - sum or sum
  end

  -- log_step_back moves entries from the future to now, as one.
  local function log_step_back(key, n, oldest, l)
    local size = call('LLEN', key)
    local first = log_after(key, now, 1, size)
    local sum = log_units(key, n, first, size)
    call('LTRIM', key, 0, first - 1)
    call('RPUSH', key, encode(now, sum, 0))
    call('LSET', key, 0, encode(now, n, 0))
    log_expire(key, now, l)
    return min(oldest, now)
  end

  -- log_trim removes entries that have expired by eff, as the oldest has. The
  -- last of them becomes the header, so that two commands do for any number.
  local function log_trim(key, n, t, eff, l)
    local size = call('LLEN', key)
    local low, high = 2, 2
    -- Mostly few have expired, so it looks far only step by step.
    while high < size and (decode(call('LINDEX', key, high)) or 0) <= eff - l.window do
      low, high = high + 1, high * 2
    end
    local first = log_after(key, eff - l.window, low, min(high, size))
    if first == size then
      return log_drop(key)
    end
    n = log_units(key, n, first, size)
    local oldest = decode(call('LINDEX', key, first))
    if n <= 0 or not oldest then
      return log_drop(key)
    end
    call('LTRIM', key, first - 1, -1)
    call('LSET', key, 0, encode(t, n, 0))
    return n, t, oldest, true
  end

  local function log_at(n, t, oldest, l, key)
    if n == 0 then
      return 0, now, 0, false
    end
    local changed = false
    if t > now + TOLERANCE then
      oldest = log_step_back(key, n, oldest, l)
      t, changed = now, true
    end
    local eff = max(t, now)
    if t + l.window <= eff then
      return log_drop(key)
    end
    if eff - oldest >= l.window then
      return log_trim(key, n, t, eff, l)
    end
    return n, t, oldest, changed
  end

  -- log_append adds an entry, of the newest one's instant if that is later.
  local function log_append(n, t, oldest, units, key, l, instant)
    t = max(t, instant)
    local text = encode(t, units, 0)
    if n == 0 then
      if unparsable[key] then
        call('DEL', key)
        unparsable[key] = nil
      end
      call('RPUSH', key, text, text)
      oldest = t
    else
      call('LSET', key, 0, encode(t, n + units, 0))
      call('RPUSH', key, text)
    end
    log_expire(key, t, l)
    return n + units, t, oldest
  end

  local function log_charge(n, t, oldest, units, key, l)
    return log_append(n, t, oldest, units, key, l, now)
  end

  -- log_remove removes the entries from first to last.
  local function log_remove(key, first, last, size)
    if last == size - 1 then
      call('LTRIM', key, 0, first - 1)
    elseif first == 1 then
      call('LTRIM', key, last, -1) -- the last of them becomes the header
    else
      for index = first, last do
        call('LSET', key, index, GONE)
      end
      local count = last - first + 1
      call('LREM', key, first * 2 < size and count or -count, GONE) -- from the nearer end
    end
  end

  -- log_forget takes up to units off the entries from low to high - 1, newest
  -- first, and removes those that are left with none.
  local function log_forget(n, t, oldest, units, key, low, high, size)
    local rest, first = units, high
    if size - 1 == n then -- every entry is one unit
      first = max(low, high - units)
      rest = units - (high - first)
    end
    while rest > 0 and first > low do
      local from = max(low, first - CHUNK)
      local chunk = call('LRANGE', key, from, first - 1)
      for i = #chunk, 1, -1 do
        local c = units_of(chunk[i]) or 0
        if c > rest then
          call('LSET', key, from + i - 1, encode(decode(chunk[i]) or 0, c - rest, 0))
          rest = 0
          break
        end
        rest, first = rest - c, from + i - 1
        if rest == 0 then
          break
        end
      end
    end
    if rest == units then
      return n, t, oldest
    end
    n = n - (units - rest)
    if n <= 0 then
      return log_drop(key)
    end
    if first < high then
      log_remove(key, first, high - 1, size)
    end
    oldest, t = decode(call('LINDEX', key, 1) or ''), decode(call('LINDEX', key, -1))
    if not oldest or not t then
      return log_drop(key)
    end
    call('LSET', key, 0, encode(t, n, 0))
    return n, t, oldest
  end

  -- log_entry_of returns the entry that has the unit of a number, counted from
  -- the oldest entry on, or from the newest back. It reads no more entries.
  local function log_entry_of(key, unit, back, size)
    local low, high = 1, size - 1 -- are yet to be read
    while low <= high do
      local more = min(unit, CHUNK, high - low + 1)
      local from = back and high - more + 1 or low
      local chunk = call('LRANGE', key, from, from + more - 1)
      for i = 1, #chunk do
        local entry = chunk[back and #chunk + 1 - i or i]
        unit = unit - (units_of(entry) or 0)
        if unit <= 0 then
          return entry
        end
      end
      if back then
        high = high - more
      else
        low = low + more
      end
    end
    return ''
  end

  -- log_free_at returns the instant at which units fit, 0 if they do or never
  -- will: when the last of those that are in their way expires.
  local function log_free_at(n, t, units, l, key)
    local excess = n + units - l.burst
    if excess <= 0 or units > l.burst then
      return 0
    end
    local size = call('LLEN', key)
    if size - 1 == n then -- every entry is one unit
      return (decode(call('LINDEX', key, excess)) or t) + l.window
    end
    local back = excess * 2 > n
    local entry = log_entry_of(key, back and n - excess + 1 or excess, back, size)
    return (decode(entry) or t) + l.window
  end

  return {
    load = log_load,
    at = log_at,
    used = units_used,
    charge = log_charge,
    force = function(n, t, oldest, units, key, l)
      units = min(units, l.cap - n)
      if units <= 0 then
        return n, t, oldest
      end
      return log_charge(n, t, oldest, units, key, l)
    end,
    backfill = function(n, t, oldest, units, l, key, instant)
      local newest = n > 0 and t or 0
      units = min(units, max(0, l.burst - n))
      instant = max(newest, min(instant, now))
      if units == 0 or instant + l.window <= now then
        return n, t, oldest
      end
      return log_append(n, newest, oldest, units, key, l, instant)
    end,
    grant = function(n, t, oldest, units, key)
      if units >= n then
        return log_drop(key)
      end
      local size = call('LLEN', key)
      return log_forget(n, t, oldest, units, key, 1, size, size)
    end,
    undo = function(_, _, _, n, t, oldest, units, rt, _, _, _, key)
      local size = call('LLEN', key)
      local high = log_after(key, rt, 1, size)
      local low = log_after(key, rt - 1, 1, high)
      return log_forget(n, t, oldest, units, key, low, high, size)
    end,
    instants = function(n, t, need, l, key)
      local unit = log_free_at(n, t, 1, l, key)
      if need == 1 then
        return unit, unit
      end
      return log_free_at(n, t, need, l, key), unit
    end,
  }
end
