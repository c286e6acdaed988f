-- Sliding window log. Twin: sliding_window_log.go. Step: see state.lua.
--
-- State: a list. Element 0 is a header (t, n): the instant of the newest entry
-- and the sum of all units. Then there is one entry (instant, units) per take,
-- oldest first, in the form of strings. An entry counts for one window. f is 0.
-- The step changes the list at once, so it has no full_at.
--
-- A list may have 20 000 entries, so the step reads few of them:
--
-- If there are n entries, each is one unit, and numbers of units are places.
-- Otherwise the sum of a part comes from the shorter half.
--
-- Entries are in the order of their instants, so after() finds a place by
-- bisection: entries below low are not after the instant, entries from high on
-- are, and each LINDEX halves the range between. Usually few entries have
-- expired. So trim() doubles high until that entry has not expired, and bisects
-- below it. Entry 1 has always expired. LTRIM keeps the last expired entry, and
-- LSET makes it the new header: two commands for any number of entries.
--
-- Example: of 1 000 entries, 5 have expired. trim() reads 2, 4 and 8, and then
-- 6 and 5 by bisection. LTRIM 5 -1 makes the last expired entry element 0.

if steps.sl then
  local CHUNK = 128 -- entries per LRANGE
  local GONE = 'x' -- marks entries that LREM removes

  -- By key: the instant of the oldest entry; whether there is a list without a
  -- state; how many entries have expired that at has left in the list.
  local oldest, unparsable, stale = {}, {}, {}

  -- entry returns the text of an entry, or of the header.
  local function entry(t, n)
    if n <= 999 and t >= 1e15 then
      return format('%d%03d', t, n)
    end
    return format('%d:%d:0', t, n)
  end

  local function drop(key)
    call('DEL', key)
    return 0, now, 0, true
  end

  -- units_of returns the units of an entry, or nil if it does not parse. It
  -- decodes only the units of the short form. The long form ends in :0 (a colon
  -- is byte 58). It has the same length if t has fewer digits, as before 2001.
  local function units_of(text)
    if #text == 19 then
      local x, y, z = byte(text, 17, 19)
      if y ~= 58 then
        return x * 100 + y * 10 + z - 5328
      end
    end
    local _, units = decode(text)
    return units
  end

  local function instant_at(key, index)
    return decode(call('LINDEX', key, index) or '')
  end

  -- after returns the place of the first entry after an instant, from low to
  -- high. An entry that does not parse counts as the oldest possible.
  local function after(key, instant, low, high)
    while low < high do
      local middle = floor((low + high) / 2)
      if (instant_at(key, middle) or 0) > instant then
        high = middle
      else
        low = middle + 1
      end
    end
    return low
  end

  -- sum_from returns the units of the entries from a place on, out of n.
  local function sum_from(key, n, first, size)
    if size - 1 == n then
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

  -- step_back moves the entries from the future to now, as one entry.
  local function step_back(n, l, key)
    local size = call('LLEN', key)
    local first = after(key, now, 1, size)
    local sum = sum_from(key, n, first, size)
    call('LTRIM', key, 0, first - 1)
    call('RPUSH', key, entry(now, sum))
    call('LSET', key, 0, entry(now, n))
    expire(key, now + l.window)
    oldest[key] = min(oldest[key], now)
  end

  -- trim removes the entries that have expired by eff. The oldest entry has. If
  -- look is true, it only counts them.
  local function trim(n, t, l, key, eff, look)
    local size = call('LLEN', key)
    local low, high = 2, 2
    while high < size and (instant_at(key, high) or 0) <= eff - l.window do
      low, high = high + 1, high * 2
    end
    local first = after(key, eff - l.window, low, min(high, size))
    n = sum_from(key, n, first, size)
    if look and n > 0 then
      stale[key] = first - 1
      return n, t, 0
    end
    oldest[key] = instant_at(key, first)
    if n <= 0 or not oldest[key] then
      return drop(key)
    end
    call('LTRIM', key, first - 1, -1)
    call('LSET', key, 0, entry(t, n))
    return n, t, 0, true
  end

  -- charge adds an entry, at the newest entry's instant if that is later.
  local function charge(n, t, _, l, key, units)
    t = max(t, now)
    local text = entry(t, units)
    if n == 0 then
      if unparsable[key] then
        call('DEL', key)
        unparsable[key] = nil
      end
      call('RPUSH', key, text, text)
      oldest[key] = t
    else
      call('LSET', key, 0, entry(t, n + units))
      call('RPUSH', key, text)
    end
    expire(key, t + l.window)
    return n + units, t, 0
  end

  -- remove removes the entries from first to last. If the list begins with
  -- them, the last one becomes the header.
  local function remove(key, first, last, size)
    if last == size - 1 then
      call('LTRIM', key, 0, first - 1)
    elseif first == 1 then
      call('LTRIM', key, last, -1)
    else
      for index = first, last do
        call('LSET', key, index, GONE)
      end
      local count = last - first + 1
      call('LREM', key, first * 2 < size and count or -count, GONE) -- from the nearer end
    end
  end

  -- forget takes up to units off the entries from low to high - 1, newest
  -- first, and removes entries that have no units left.
  local function forget(n, t, key, units, low, high, size)
    local left, first = units, high
    if size - 1 == n then
      first = max(low, high - units)
      left = units - (high - first)
    end
    while left > 0 and first > low do
      local from = max(low, first - CHUNK)
      local chunk = call('LRANGE', key, from, first - 1)
      for i = #chunk, 1, -1 do
        local c = units_of(chunk[i]) or 0
        if c > left then
          call('LSET', key, from + i - 1, entry(decode(chunk[i]) or 0, c - left))
          left = 0
          break
        end
        left, first = left - c, from + i - 1
        if left == 0 then
          break
        end
      end
    end
    if left == units then
      return n, t, 0
    end
    n = n - (units - left)
    if n <= 0 then
      return drop(key)
    end
    if first < high then
      remove(key, first, high - 1, size)
    end
    oldest[key], t = instant_at(key, 1), instant_at(key, -1)
    if not oldest[key] or not t then
      return drop(key)
    end
    call('LSET', key, 0, entry(t, n))
    return n, t, 0
  end

  -- entry_of returns the entry of a unit, counted from the oldest, which is at
  -- low, or from the newest back. It reads nothing beyond the chunk of that entry.
  local function entry_of(key, unit, back, low, size)
    local high = size - 1 -- not read yet
    while low <= high do
      local more = min(unit, CHUNK, high - low + 1)
      local from = back and high - more + 1 or low
      local chunk = call('LRANGE', key, from, from + more - 1)
      for i = 1, #chunk do
        local text = chunk[back and #chunk + 1 - i or i]
        unit = unit - (units_of(text) or 0)
        if unit <= 0 then
          return text
        end
      end
      low, high = back and low or low + more, back and high - more or high
    end
    return ''
  end

  -- free_at returns when a cost fits: when the last unit expires that leaves no
  -- room.
  local function free_at(n, t, l, key, cost)
    local excess = n + cost - l.burst
    if excess <= 0 or cost > l.burst then
      return 0
    end
    local size, expired = call('LLEN', key), stale[key] or 0
    if size - 1 - expired == n then
      return (instant_at(key, expired + excess) or t) + l.window
    end
    local back = excess * 2 > n
    local found = entry_of(key, back and n - excess + 1 or excess, back, 1 + expired, size)
    return (decode(found) or t) + l.window
  end

  steps.sl = {
    load = function(key)
      local head = pcall('LRANGE', key, 0, 1)
      if head.err then
        return nil, head.err
      end
      if not head[1] then
        return 0, 0, 0, false
      end
      local t, n = decode(head[1])
      oldest[key] = head[2] and decode(head[2])
      if not t or n == 0 or not oldest[key] then
        unparsable[key] = true
        return 0, 0, 0, false
      end
      return n, t, 0, true
    end,
    at = function(n, t, _, l, key, look)
      stale[key] = nil
      if n == 0 then
        return 0, now, 0, false
      end
      local changed = false
      if t > now + 100000 then
        step_back(n, l, key)
        t, changed = now, true
      end
      local eff = max(t, now)
      if t + l.window <= eff and look then
        return 0, now, 0
      elseif t + l.window <= eff then
        return drop(key)
      end
      if eff - oldest[key] < l.window then
        return n, t, 0, changed
      end
      return trim(n, t, l, key, eff, look)
    end,
    charge = charge,
    grant = function(n, t, _, _, key, units)
      if units >= n then
        return drop(key)
      end
      local size = call('LLEN', key)
      return forget(n, t, key, units, 1, size, size)
    end,
    undo = function(n, t, _, _, key, units, take)
      local size = call('LLEN', key)
      local high = after(key, take.t, 1, size)
      local low = after(key, take.t - 1, 1, high)
      return forget(n, t, key, units, low, high, size)
    end,
    instants = function(n, t, _, l, key, cost)
      local unit_at = free_at(n, t, l, key, 1)
      return cost == 1 and unit_at or free_at(n, t, l, key, cost), unit_at
    end,
  }
end
