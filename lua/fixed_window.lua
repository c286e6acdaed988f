-- Fixed window. Twin: fixed_window.go. Step: see state.lua.
--
-- State: n units are used in the window of t, the last write. f is 0. Windows
-- are aligned to the epoch: window i begins at i * window.
--
-- n may exceed the limit: debt goes into the next windows, and each window pays
-- off one full limit. So the state matters for ceil(n / burst) windows.
-- Example: 10 per minute and n = 25. The next windows begin with 15, 5 and 0
-- units in use, so the state matters for 3 windows.
--
-- Other windows that turn for all keys at once can use this step.

-- windows returns a step, given two functions. turned(from, to, l) returns how
-- many windows ended from one instant to another. turn(at, k, l) returns the end
-- of the k-th window; the first is the window of the instant at.
local windows = mixed and function(turned, turn)
  return {
    at = function(n, t, _, l)
      n = min(n, l.cap)
      if n == 0 then
        return 0, now, 0, false
      end
      local repair = t > now + 100000
      if repair then
        t = now
      end
      local eff = max(t, now)
      local rolled = turned(t, eff, l)
      if rolled > 0 then
        n = max(0, n - min(rolled, ceil(n / l.burst)) * l.burst)
      end
      return n, eff, 0, repair
    end,
    undo = function(n, t, f, l, _, units, take)
      if turned(take.t, t, l) == 0 then
        n = max(0, n - units)
      end
      return n, t, f
    end,
    full_at = function(n, t, _, l)
      return turn(t, ceil(n / l.burst), l)
    end,
  }
end

if steps.fw then
  steps.fw = windows(function(from, to, l)
    return floor(to / l.window) - floor(from / l.window)
  end, function(at, k, l)
    return (floor(at / l.window) + k) * l.window
  end)
end
