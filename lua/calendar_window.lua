-- Calendar window. Twin: calendar_window.go. Step: see state.lua.
--
-- State and step are the fixed window's, in periods of a calendar. Only
-- the caller knows the calendar. It sends five turns, the instants at which
-- periods begin, as the limit's further doubles: the start of the previous
-- period, of the present one by its own clock, and of the next three.
--
-- All instants before the first turn count as one period, and so do all after
-- the last. So a clock that is wrong by more than a period forgets nothing
-- early.
--
-- Example: days in UTC, and the caller's clock says 10 March, 12:00. The turns
-- are the midnights of 9, 10, 11, 12 and 13 March. An instant on 9 March is in
-- period 1, and one on 10 March in period 2: one period has turned between
-- them.

if steps.cw then
  -- period returns how many of the turns have come by an instant.
  local function period(instant, turns)
    local i = 0
    while i < #turns and turns[i + 1] <= instant do
      i = i + 1
    end
    return i
  end

  steps.cw = windows(function(from, to, l)
    return period(to, l.further) - period(from, l.further)
  end, function(at, k, l)
    local turns = l.further
    -- No period is twice as long as another, so an unknown turn is not later
    -- than this. A known turn is not either, unless the clock is far off.
    local latest = at + 2 * k * (turns[#turns] - turns[#turns - 1])
    return min(turns[period(at, turns) + k] or latest, latest)
  end)
end
