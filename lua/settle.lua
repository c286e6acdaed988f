-- Settlements, applied one after the other to the current state. Twin:
-- settle.go.
--
-- The functions are made only for a script of settlements.

-- settle applies a settlement to a key, and returns its answer. receipt reads a
-- receipt at a place, and returns the next place.
local settle, receipt

if settles then
  local RETURN, FORCE, GRANT, RESET, RENEW, BACKFILL = 3, 4, 5, 6, 7, 8

  -- uncut returns a limit with the highest cap with which the arithmetic is exact.
  local function uncut(l)
    local whole = {}
    for name, value in pairs(l) do
      whole[name] = value
    end
    whole.cap = max(l.cap, min(1073741824, floor((EXACT - 1) / max(1, l.r)) - 1)) -- 2^30
    return whole
  end

  -- undone is the state after a return. at begins an era if the rate is another
  -- one. A take of the era before is still in the state if no other write has
  -- changed the key since. After a repair of the clock it is not.
  local function undone(l, units, take, key, n, t, f, past)
    local undo, before = l.step.undo, take.stored_past
    if n == 0 and f == 0 then
      return n, t, f, past
    elseif era_of(past) == take.era then
      return undo(n, t, f, past, l, key, units, take)
    elseif unchanged(take) and era_of(before) == take.era and not take.repaired then
      return undo(take.stored_n, take.stored_t, take.stored_f, before, l, key, units, take)
    end
    return n, t, f, past
  end

  -- granted is the state after a grant. Receipts must not outlive the note of a
  -- rate.
  local function granted(l, units, key, n, t, f, past)
    local n1, t1, f1, past1 = max(0, n - units), t, f, past
    if l.step.grant then
      n1, t1, f1, past1 = l.step.grant(n, t, f, past, l, key, units)
    end
    if n1 == 0 and f1 == 0 and past and past.r > 0 then
      return 0, now, 0, new_era(past, now)
    end
    return n1, t1, f1, past1
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
      return granted(l, units, key, n, t, f, past)
    elseif op == BACKFILL then
      if step.backfill then
        return step.backfill(n, t, f, past, l, key, units, taken)
      end
    elseif op == RENEW then
      if step.renew then
        return step.renew(n, t, f, past, l, key, units, taken)
      end
    elseif op == RETURN then
      return undone(l, units, taken, key, n, t, f, past)
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
    local whole = l
    if op == RETURN then
      whole = uncut(l) -- units that are cut cannot be told from others
    end
    local n1, t1, f1, past1, repaired = l.step.at(N[k], T[k], F[k], P[k], whole, key)
    if repaired then
      keep(k, n1, t1, f1, past1, l)
    end
    if taken then
      taken.repaired = repaired
    end
    if units > 0 then
      local n, t, f, past = settled(op, whole, units, taken, key, n1, t1, f1, past1)
      -- Other settlements write nothing if they change nothing.
      if op == FORCE or op == GRANT or n ~= n1 or t ~= t1 or f ~= f1 or era_of(past) ~= era_of(past1) then
        keep(k, n, t, f, past, l)
      end
    end
    n1, t1, f1, past1 = current(k, l) -- undo may have returned the state of an earlier instant
    return answer(v, n1, t1, f1, past1, l, key, 0)
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
