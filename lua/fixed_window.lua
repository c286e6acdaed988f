-- Fixed window. Twin: fixed_window.go. Step: see steps.lua.
--
-- State: n units are used in the window of t, the last write. f is 0. Windows
-- are aligned to the epoch: window i begins at i * window.
--
-- n may exceed the limit: debt goes into the next windows, and each window pays
-- off one full limit. So the state matters for ceil(n / burst) windows.
-- Example: 10 per minute and n = 25. The next windows begin with 15, 5 and 0
-- units in use, so the state matters for 3 windows.
--
-- Other windows that turn for all keys at once can use this step. The maker
-- takes their two functions. turned(from, to, l) returns how many windows ended
-- from one instant to another. turn(at, k, l) returns the end of the k-th
-- window; the first is the window of the instant at.

makers.fw = function(turned, turn)
  turned = turned or function(from, to, l)
    return floor(to / l.window) - floor(from / l.window)
  end

  turn = turn or function(at, k, l)
    return (floor(at / l.window) + k) * l.window
  end

  return {
    at = function(n, t, _, past, l)
      n, _, past = lowered(n, 0, past, l.cap)
      if n == 0 then
        return 0, now, 0, past, false
      end
      local written, repair = stepped_back(t)
      if repair then
        past = new_era(past, now)
      end
      local eff = max(written, now)
      local rolled = turned(written, eff, l)
      if rolled > 0 then
        n = max(0, n - min(rolled, ceil(n / l.burst)) * l.burst)
      end
      if n == 0 then
        past = new_era(past, eff)
      end
      return n, eff, 0, past, repair
    end,
    backfill = function(n, t, f, past, l, _, units, take)
      if turned(take.at, t, l) == 0 then
        n = n + min(units, max(0, l.burst - n))
      end
      return n, t, f, past
    end,
    undo = function(n, t, f, past, l, _, units, take)
      if turned(take.t, t, l) == 0 then
        n = max(0, n - units)
      end
      return n, t, f, past
    end,
    full_at = function(n, t, _, _, l)
      return turn(t, ceil(n / l.burst), l)
    end,
  }
end
