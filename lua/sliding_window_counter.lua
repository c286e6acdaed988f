-- Sliding window counter. State: last written at t, n units in t's window, f
-- in the one before. Twin: algorithms/sliding_window_counter.go.

local function sliding_window_counter()
  local SPLIT = 8388608 -- 2^23

  -- weight returns ceil(f * m / w) exactly, for f <= 2^30 and m <= w < 2^45.
  local function weight(f, m, w)
    local product = f * m
    if product < EXACT then
      return ceil(product / w)
    end
    -- The product is inexact. Its quotient is off by one at the most, and the
    -- difference f*m - q*w is exact when formed from halves.
    local q = floor(f * (m / w))
    local mh, wh = floor(m / SPLIT), floor(w / SPLIT)
    local difference = (f * mh - q * wh) * SPLIT + (f * (m - mh * SPLIT) - q * (w - wh * SPLIT))
    return q + ceil(difference / w)
  end

  return {
    load = load_string,
    at = function(n, t, f, l)
      n, f = min(n, l.cap), min(f, l.cap)
      if n == 0 and f == 0 then
        return 0, now, 0, false
      end
      local w = l.window
      local written, repair = stepped_back(t)
      local eff = max(written, now)
      local rolled = floor(eff / w) - floor(written / w)
      if rolled == 1 then
        n, f = 0, n
      elseif rolled > 1 then
        n, f = 0, 0
      end
      return n, eff, f, repair
    end,
    used = function(n, t, f, l)
      return n + weight(f, l.window - t % l.window, l.window)
    end,
    charge = charge_units,
    force = force_units,
    backfill = function(n, t, f, units, l, _, instant)
      local rolled = floor(t / l.window) - floor(instant / l.window)
      if rolled == 0 then
        local used = n + weight(f, l.window - t % l.window, l.window)
        n = n + min(units, max(0, l.burst - used))
      elseif rolled == 1 then
        f = f + min(units, max(0, l.burst - n - f))
      end
      return n, t, f
    end,
    grant = function(n, t, f, units)
      local credit = min(n, units)
      return n - credit, t, max(0, f - (units - credit))
    end,
    undo = function(_, _, _, n, t, f, units, rt, _, _, l)
      local rolled = floor(t / l.window) - floor(rt / l.window)
      if rolled == 0 then
        n = max(0, n - units)
      elseif rolled == 1 then
        f = max(0, f - units)
      end
      return n, t, f
    end,
    full_at = function(n, t, _, l)
      return (floor(t / l.window) + (n > 0 and 2 or 1)) * l.window
    end,
  }
end
