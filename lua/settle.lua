-- Settlements, applied one after the other to the current state. Twin:
-- settle.go.
--
-- The functions are made only for a script of settlements.

-- settle applies a settlement to a key, and returns its answer. receipt reads a
-- receipt at a place, and returns the next place.
local settle, receipt

if settles then
  local FORCE, GRANT, RESET, RENEW, BACKFILL = 4, 5, 6, 7, 8 -- a return is 3

  -- of_era reports whether a take belongs to the state. at begins an era if it
  -- forgets units. A take of the era before is still in the state if no
  -- other write has changed the key since, unless its clock was repaired.
  local function of_era(past, take)
    return era_of(past) == take.era
      or (unchanged(take) and era_of(take.stored_past) == take.era and not select(2, stepped_back(take.stored_t)))
  end

  -- settled returns the state after a settlement, given the state now. A force is a
  -- charge that is cut to the cap.
  local function settled(op, l, units, taken, key, n, t, f, past)
    local step = l.step
    if op == FORCE then
      units = min(units, l.cap - n)
      if units > 0 and step.charge then
        return step.charge(n, t, f, past, l, key, units, taken)
      end
      return n + max(0, units), t, f, past
    elseif op == GRANT then
      if step.grant then
        return step.grant(n, t, f, past, l, key, units)
      end
      return max(0, n - units), t, f, past
    elseif op == BACKFILL then
      if step.backfill then
        return step.backfill(n, t, f, past, l, key, units, taken)
      end
    elseif op == RENEW then
      if step.renew then
        return step.renew(n, t, f, past, l, key, units, taken)
      end
    elseif (n > 0 or f > 0) and of_era(past, taken) then
      return step.undo(n, t, f, past, l, key, units, taken)
    end
    return n, t, f, past
  end

  -- reset forgets a key. Steps that write for themselves identify their takes
  -- by instants, so they need no era.
  local function reset(k, l)
    if stored[k] and l.step.full_at then
      keep(k, 0, now, 0, new_era(P[k], now), l)
      return
    end
    call('DEL', KEYS[k])
    N[k], T[k], F[k], P[k], stored[k], unsaved[k] = 0, now, 0, false, false, false
  end

  function settle(op, k, l, units, taken)
    local key, v = KEYS[k], stored[k] and 1 or 3
    if op == RESET then
      reset(k, l)
      return answer(v, 0, now, 0, P[k], l, key, 0)
    end
    if taken then -- undo compares it with the state that the take left
      taken.stored_n, taken.stored_t, taken.stored_f, taken.stored_past = N[k], T[k], F[k], P[k]
    end
    local n1, t1, f1, past1 = current(k, l)
    if units == 0 then
      return answer(v, n1, t1, f1, past1, l, key, 0)
    end
    local n, t, f, past = settled(op, l, units, taken, key, n1, t1, f1, past1)
    -- Other settlements write nothing if they change nothing.
    if op == FORCE or op == GRANT or n ~= n1 or t ~= t1 or f ~= f1 then
      keep(k, n, t, f, past, l)
    end
    n, t, f, past = current(k, l) -- undo may return the state of an earlier instant
    return answer(v, n, t, f, past, l, key, 0)
  end

  function receipt(op, packed, pos)
    if op == FORCE or op == GRANT or op == RESET then
      return nil, pos
    end
    local taken = {}
    taken.t, taken.n, taken.f, taken.at, taken.era, pos = unpack('<dI4ddd', packed, pos)
    taken.shift, taken.r, taken.w, pos = unpack('<ddd', packed, pos)
    return taken, pos
  end
end
