-- Concurrent requests. Twin: concurrent.go. Step: see state.lua.
--
-- State: a sorted set of the units that are held. A member names a unit by the
-- id of its take and its number among the units of the take, from 1. Its score is
-- the instant at which the unit was taken or renewed. A unit is free a window later
-- unless it is renewed.
--
-- n is the number of members, t the newest score, and f is 0. The step changes
-- the set at once, so it has no full_at. Takes are distinguished: a take has an
-- id and the number of its last unit.
--
-- Example: window 30 s. A take of 2 units at 0 s and one of 1 unit at 5 s make
-- three members with the scores 0, 0 and 5 s. With n = 3 a take at 10 s is
-- denied. The member at rank 0 has the score 0, so a cost of 1 fits at 30 s,
-- and so does a cost of 2.

if steps.co then
  local CHUNK = 256 -- units per command: Lua's stack bounds the arguments

  -- By key: the oldest score; how many units have ended that at has left in the
  -- set.
  local oldest, stale = {}, {}

  -- score_at returns the score of the unit at a rank.
  local function score_at(key, rank)
    local unit = call('ZRANGE', key, rank, rank, 'WITHSCORES')
    return floor(tonumber(unit[2]) or 0)
  end

  local function name_of(id, unit)
    return format('%016d:%05d', id, unit)
  end

  local function drop(key)
    call('DEL', key)
    return 0, now, 0, true
  end

  -- rest returns the state of a set that has n units left.
  local function rest(key, n)
    if n <= 0 then
      return 0, now, 0
    end
    oldest[key] = score_at(key, 0)
    return n, score_at(key, -1), 0
  end

  -- put sets the score of units, and returns how many of them are new.
  local function put(key, t, l, names)
    local score, new = format('%d', t), 0
    for first = 1, #names, CHUNK do
      local members = {}
      for i = first, min(first + CHUNK - 1, #names) do
        members[#members + 1] = score
        members[#members + 1] = names[i]
      end
      new = new + call('ZADD', key, spread(members))
    end
    expire(key, t + l.window)
    return new
  end

  -- free_at returns when a cost fits if no request ends: when enough of the
  -- oldest units have ended.
  local function free_at(n, l, key, cost)
    local excess = n + cost - l.burst
    if excess <= 0 or cost > l.burst then
      return 0
    end
    return score_at(key, excess - 1 + (stale[key] or 0)) + l.window
  end

  steps.co = {
    told_apart = true,
    load = function(key)
      local n = pcall('ZCARD', key)
      if type(n) == 'table' then
        return nil, n.err
      end
      if n == 0 then
        return 0, 0, 0, false
      end
      oldest[key] = score_at(key, 0)
      return n, score_at(key, -1), 0, true
    end,
    at = function(n, t, _, l, key, look)
      stale[key] = nil
      if n == 0 then
        return 0, now, 0, false
      end
      local changed = false
      if t > now + 100000 then -- units from the future move to now
        put(key, now, l, call('ZRANGEBYSCORE', key, '(' .. format('%d', now), '+inf'))
        t, oldest[key], changed = now, min(oldest[key], now), true
      end
      local eff = max(t, now)
      local ended = format('%d', eff - l.window)
      if look then
        stale[key] = #call('ZRANGEBYSCORE', key, '-inf', ended)
        return n - stale[key], stale[key] < n and t or now, 0
      end
      if t + l.window <= eff then
        return drop(key)
      end
      if eff - oldest[key] >= l.window then
        n = n - call('ZREMRANGEBYSCORE', key, '-inf', ended)
        oldest[key], changed = score_at(key, 0), true
      end
      return n, t, 0, changed
    end,
    charge = function(n, t, _, l, key, units, take)
      t = max(t, now)
      local names, id = {}, take.id
      for unit = 1, units do
        names[unit] = name_of(id, unit)
      end
      if n == 0 then
        oldest[key] = t
      end
      return n + put(key, t, l, names), t, 0
    end,
    -- A grant frees the oldest units, though their requests may still run.
    grant = function(n, t, _, _, key, units)
      if units >= n then
        return drop(key)
      end
      call('ZREMRANGEBYRANK', key, 0, format('%d', units - 1))
      oldest[key] = score_at(key, 0)
      return n - units, t, 0
    end,
    -- undo frees the last units of the take.
    undo = function(n, _, _, _, key, units, take)
      for unit = max(take.last - units + 1, 1), take.last do
        n = n - call('ZREM', key, name_of(take.id, unit))
      end
      return rest(key, n)
    end,
    -- Units that have ended are held again, up to the cap.
    renew = function(n, t, _, l, key, _, take)
      local names = {}
      for unit = 1, take.last do
        local name = name_of(take.id, unit)
        local new = not call('ZSCORE', key, name)
        if not new or n < l.cap then
          names[#names + 1] = name
          n = n + (new and 1 or 0)
        end
      end
      if #names == 0 then
        return n, t, 0
      end
      put(key, max(t, now), l, names)
      return rest(key, n)
    end,
    instants = function(n, _, _, l, key, cost)
      return free_at(n, l, key, cost), free_at(n, l, key, 1)
    end,
  }
end
