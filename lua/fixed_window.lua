-- Fixed window. State: last written at t, n units used in t's window, which is
-- aligned to the epoch. Twin: algorithms/fixed_window.go.

-- aligned_window makes the step of windows that turn for all keys at once:
-- turned(from, to, l) is how many ended from one instant to another, and
-- turn(at, k, l) the end of the k-th from that of an instant on.
local function aligned_window(turned, turn)
  return {
    load = load_string,
    at = function(n, t, _, l)
      n = min(n, l.cap)
      if n == 0 then
        return 0, now, 0, false
      end
      local written, repair = stepped_back(t)
      local eff = max(written, now)
      local rolled = turned(written, eff, l)
      if rolled > 0 then
        -- Debt goes into the next windows: each pays off one full limit.
        n = max(0, n - min(rolled, ceil(n / l.burst)) * l.burst)
      end
      return n, eff, 0, repair
    end,
    used = units_used,
    charge = charge_units,
    force = force_units,
    backfill = function(n, t, f, units, l, _, instant)
      if turned(instant, t, l) == 0 then
        n = n + min(units, max(0, l.burst - n))
      end
      return n, t, f
    end,
    grant = grant_units,
    undo = function(_, _, _, n, t, f, units, rt, _, _, l)
      if turned(rt, t, l) == 0 then
        n = max(0, n - units)
      end
      return n, t, f
    end,
    full_at = function(n, t, _, l)
      return turn(t, ceil(n / l.burst), l)
    end,
  }
end

local function fixed_window()
  return aligned_window(function(from, to, l)
    return floor(to / l.window) - floor(from / l.window)
  end, function(at, k, l)
    return (floor(at / l.window) + k) * l.window
  end)
end
