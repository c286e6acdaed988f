-- Concurrent requests. State: a sorted set of the units that are held. A unit is
-- the instant of its take, the take's id, and its place among the take's units;
-- its score is the instant at which it was taken or renewed. Between calls of a
-- step, n is their number, t the newest instant, and f the oldest.
-- The set is changed at once rather than saved at the end.
-- Twin: algorithms/concurrent.go.

local function concurrent()
  local CHUNK = 256

  -- held_at returns the instant of a unit by its rank.
  local function held_at(key, rank)
    local unit = call('ZRANGE', key, rank, rank, 'WITHSCORES')
    return floor(tonumber(unit[2]) or 0)
  end

  local function held_expire(key, t, l)
    call('PEXPIRE', key, lifetime(t + l.window))
  end

  local function held_drop(key)
    call('DEL', key)
    return 0, now, 0, true
  end

  -- held_left returns the state of a set of n, of which some were removed.
  local function held_left(key, n)
    if n <= 0 then
      return 0, now, 0
    end
    return n, held_at(key, -1), held_at(key, 0)
  end

  local function held_name(born, id, unit)
    return format('%016d:%016d:%05d', born, id, unit)
  end

  -- held_put sets the instant of units, and returns how many of them are new.
  local function held_put(key, t, names)
    local score, new = format('%d', t), 0
    for first = 1, #names, CHUNK do
      local pairs_of = {}
      for i = first, min(first + CHUNK - 1, #names) do
        pairs_of[#pairs_of + 1] = score
        pairs_of[#pairs_of + 1] = names[i]
      end
      new = new + call('ZADD', key, spread(pairs_of))
    end
    return new
  end

  local function held_load(key)
    local n = pcall('ZCARD', key)
    if type(n) == 'table' then
      return nil, n.err
    end
    if n == 0 then
      return 0, 0, 0, false
    end
    return n, held_at(key, -1), held_at(key, 0), true
  end

  -- held_step_back moves units from the future to now.
  local function held_step_back(key, l)
    held_put(key, now, call('ZRANGEBYSCORE', key, '(' .. format('%d', now), '+inf'))
    held_expire(key, now, l)
  end

  local function held_charge(n, t, oldest, units, key, l, id)
    t = max(t, now)
    local names = {}
    for unit = 1, units do
      names[unit] = held_name(t, id, unit)
    end
    local new = held_put(key, t, names)
    held_expire(key, t, l)
    return n + new, t, n == 0 and t or oldest
  end

  -- held_free_at returns the instant at which units fit even if nothing is
  -- returned, 0 if they do or never will.
  local function held_free_at(n, units, l, key)
    local excess = n + units - l.burst
    if excess <= 0 or units > l.burst then
      return 0
    end
    return held_at(key, excess - 1) + l.window
  end

  return {
    load = held_load,
    at = function(n, t, oldest, l, key)
      if n == 0 then
        return 0, now, 0, false
      end
      local changed = false
      if t > now + TOLERANCE then
        held_step_back(key, l)
        t, oldest, changed = now, min(oldest, now), true
      end
      local eff = max(t, now)
      if t + l.window <= eff then
        return held_drop(key)
      end
      if eff - oldest >= l.window then
        n = n - call('ZREMRANGEBYSCORE', key, '-inf', format('%d', eff - l.window))
        oldest, changed = held_at(key, 0), true
      end
      return n, t, oldest, changed
    end,
    used = units_used,
    charge = held_charge,
    force = function(n, t, oldest, units, key, l, id)
      units = min(units, l.cap - n)
      if units <= 0 then
        return n, t, oldest
      end
      return held_charge(n, t, oldest, units, key, l, id)
    end,
    backfill = function(n, t, oldest)
      return n, t, oldest
    end,
    grant = function(n, t, _, units, key)
      if units >= n then
        return held_drop(key)
      end
      call('ZREMRANGEBYRANK', key, 0, format('%d', units - 1))
      return n - units, t, held_at(key, 0)
    end,
    undo = function(_, _, _, n, _, _, units, born, last, id, _, key)
      for unit = max(last - units + 1, 1), last do
        n = n - call('ZREM', key, held_name(born, id, unit))
      end
      return held_left(key, n)
    end,
    renew = function(n, t, oldest, born, last, id, l, key)
      local names = {}
      for unit = 1, last do
        local name = held_name(born, id, unit)
        local new = not call('ZSCORE', key, name)
        if not new or n < l.cap then
          names[#names + 1] = name
          n = n + (new and 1 or 0)
        end
      end
      if #names == 0 then
        return n, t, oldest
      end
      t = max(t, now)
      held_put(key, t, names)
      held_expire(key, t, l)
      return held_left(key, n)
    end,
    instants = function(n, _, need, l, key)
      return held_free_at(n, need, l, key), held_free_at(n, 1, l, key)
    end,
  }
end
