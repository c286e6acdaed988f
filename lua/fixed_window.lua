-- Fixed window. State: last written at t, n units used in t's window, which is
-- aligned to the epoch. Twin: algorithms/fixed_window.go.

local function fixed_window()
  return {
    load = load_string,
    at = function(n, t, _, l)
      n = min(n, l.cap)
      if n == 0 then
        return 0, now, 0, false
      end
      local w = l.window
      local written, repair = stepped_back(t)
      local eff = max(written, now)
      local rolled = floor(eff / w) - floor(written / w)
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
      if floor(instant / l.window) == floor(t / l.window) then
        n = n + min(units, max(0, l.burst - n))
      end
      return n, t, f
    end,
    grant = grant_units,
    undo = function(_, _, _, n, t, f, units, rt, _, _, l)
      if floor(rt / l.window) == floor(t / l.window) then
        n = max(0, n - units)
      end
      return n, t, f
    end,
    full_at = function(n, t, _, l)
      return (floor(t / l.window) + ceil(n / l.burst)) * l.window
    end,
  }
end
