-- Sliding window log. State: a list; first a header (t, n): the newest entry's
-- instant and the sum of units, then one entry (instant, units) per admission,
-- oldest first. Between calls of a step, f is the oldest entry's instant.
-- The list is changed at once rather than saved at the end.
-- Twin: algorithms/sliding_window_log.go.

local function sliding_window_log()
  local CHUNK = 64
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

  -- log_step_back moves entries from the future to now, as one.
  local function log_step_back(key, n, oldest, l)
    local count, sum = 0, 0
    repeat
      local size = call('LLEN', key)
      local from = max(1, size - count - CHUNK)
      local chunk = call('LRANGE', key, from, size - count - 1)
      local done = from == 1
      for i = #chunk, 1, -1 do
        local t, units = decode(chunk[i])
        if t and t <= now then
          done = true
          break
        end
        count, sum = count + 1, sum + (units or 0)
      end
    until done
    call('LTRIM', key, 0, -count - 1)
    call('RPUSH', key, encode(now, sum, 0))
    call('LSET', key, 0, encode(now, n, 0))
    log_expire(key, now, l)
    return min(oldest, now)
  end

  -- log_trim removes entries that have expired by eff. The last of them becomes
  -- the header, so that two commands do for any number.
  local function log_trim(key, n, t, eff, l)
    local count = 0
    while true do
      local chunk = call('LRANGE', key, 1 + count, CHUNK + count)
      for i = 1, #chunk do
        local at, units = decode(chunk[i])
        if not at then
          return log_drop(key)
        end
        if eff - at < l.window then
          if n <= 0 then
            return log_drop(key)
          end
          call('LTRIM', key, count, -1)
          call('LSET', key, 0, encode(t, n, 0))
          return n, t, at, true
        end
        n, count = n - units, count + 1
      end
      if #chunk < CHUNK then
        return log_drop(key)
      end
    end
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

  local function log_charge(n, t, oldest, units, key, l)
    t = max(t, now)
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

  -- log_forget takes up to units off the entries between two instants, newest
  -- first, and removes those that are left with none.
  local function log_forget(n, t, oldest, units, key, first, last)
    if n == 0 or units == 0 then
      return n, t, oldest
    end
    local rest, gone, index = units, 0, call('LLEN', key) - 1
    while rest > 0 and index >= 1 do
      local from = max(1, index - CHUNK + 1)
      local chunk = call('LRANGE', key, from, index)
      for i = #chunk, 1, -1 do
        local at, c = decode(chunk[i])
        if rest == 0 or not at or at < first then
          rest = min(rest, 0)
          break
        end
        if at <= last then
          local taken = min(rest, c)
          rest, n = rest - taken, n - taken
          if taken == c then
            gone = gone + 1
            call('LSET', key, from + i - 1, GONE)
          else
            call('LSET', key, from + i - 1, encode(at, c - taken, 0))
          end
        end
      end
      index = from - 1
    end
    if gone > 0 then
      call('LREM', key, -gone, GONE)
    end
    local head, tail = call('LINDEX', key, 1), call('LINDEX', key, -1)
    if n <= 0 or not head then
      return log_drop(key)
    end
    oldest, t = decode(head), decode(tail)
    if not oldest or not t then
      return log_drop(key)
    end
    call('LSET', key, 0, encode(t, n, 0))
    return n, t, oldest
  end

  -- log_free_at returns the instant at which units fit, 0 if they do or never
  -- will. Every entry frees at least one, so it reads no more than units.
  local function log_free_at(n, t, units, l, key)
    local excess = n + units - l.burst
    if excess <= 0 or units > l.burst then
      return 0
    end
    if call('LLEN', key) - 1 == n then -- every entry is one unit
      return (decode(call('LINDEX', key, excess)) or t) + l.window
    end
    local index = 1
    while true do
      local chunk = call('LRANGE', key, index, index + min(excess, CHUNK) - 1)
      for i = 1, #chunk do
        local at, c = decode(chunk[i])
        excess = excess - (c or 0)
        if excess <= 0 then
          return (at or t) + l.window
        end
      end
      if #chunk == 0 then
        return t + l.window
      end
      index = index + #chunk
    end
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
    grant = function(n, t, oldest, units, key)
      return log_forget(n, t, oldest, units, key, 0, EXACT)
    end,
    undo = function(_, _, _, n, t, oldest, units, rt, _, _, _, key)
      return log_forget(n, t, oldest, units, key, rt, rt)
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
