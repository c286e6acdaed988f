-- Calendar window. The fixed window's state and step, in days or months: of
-- these the caller sends five turns, from that before the period of its own
-- clock on, in the place of numbers that windows do not need. What lies before
-- the first is in one period, and what lies after the last, too: a clock that is
-- wrong by more than a period forgets nothing early.
-- Twin: algorithms/calendar.go.

local function calendar_window()
  local function turns_of(l)
    l.turns = l.turns or { l.r, l.w, l.a, l.b, l.window }
    return l.turns
  end

  -- period returns how many of the turns have come by an instant.
  local function period(instant, turns)
    local i = 0
    while i < #turns and turns[i + 1] <= instant do
      i = i + 1
    end
    return i
  end

  return aligned_window(function(from, to, l)
    local turns = turns_of(l)
    return period(to, turns) - period(from, turns)
  end, function(at, k, l)
    local turns = turns_of(l)
    -- Of what is unknown it is not early: no period is twice as long as another.
    local latest = at + 2 * k * (turns[#turns] - turns[#turns - 1])
    return min(turns[period(at, turns) + k] or latest, latest)
  end)
end
