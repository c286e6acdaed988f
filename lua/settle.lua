-- Settlements, applied one after the other to the current state. Twin:
-- settle.go.
--
-- The functions are made only for a script of settlements.

-- settle applies a settlement to a key, and returns its answer. receipt reads a
-- receipt at a place, and returns the next place.
local settle, receipt

if settles then
  local RETURN, FORCE, GRANT, RESET, RENEW, BACKFILL = 5, 6, 7, 8, 9, 10

  -- settled returns the state after a settlement, given the state now.
  local function settled(op, l, units, taken, key, n, t, f)
    local step = l.step
    if op == FORCE or op == BACKFILL then
      local used = op == BACKFILL and step.used
      units = min(units, (op == FORCE and l.cap or l.burst) - (used and used(n, t, f, l) or n))
      if units > 0 and step.charge then
        return step.charge(n, t, f, l, key, units, taken)
      end
      return n + max(0, units), t, f
    elseif op == RENEW and step.renew then
      return step.renew(n, t, f, l, key, units, taken)
    elseif op == RETURN and n + f > 0 then
      return (step.undo or less)(n, t, f, l, key, units, taken)
    end
    return n, t, f
  end

  -- grant takes units off the stored state. So the result does not depend on the
  -- limit, and the key keeps its TTL.
  local function grant(k, l, units)
    local n, t, f = N[k], T[k], F[k]
    if n + f > 0 and units > 0 then
      n, t, f = (l.step.grant or less)(n, t, f, l, KEYS[k], units)
      keep(k, n, t, f, l, true)
    end
    return l.step.at(n, t, f, l, KEYS[k], true)
  end

  function settle(op, k, l, units, taken)
    local key, v, n, t, f = KEYS[k], stored[k] and 1 or 3, 0, now, 0
    if op == RESET then
      call('DEL', key)
      N[k], T[k], F[k], stored[k], unsaved[k] = 0, now, 0, false, false
      texts[k], T0[k] = false, false -- a later settlement makes a new key
    elseif op == GRANT then
      if T[k] > now + 100000 then
        current(k, l)
      end
      n, t, f = grant(k, l, units)
    else
      local n1, t1, f1 = current(k, l)
      if taken then -- undo may compare it with the state that the take left
        taken.stored_n, taken.stored_t, taken.stored_f = N[k], T[k], F[k]
      end
      if units > 0 then
        n, t, f = settled(op, l, units, taken, key, n1, t1, f1)
        if op == FORCE or n ~= n1 or t ~= t1 or f ~= f1 then
          keep(k, n, t, f, l)
        end
      end
      n, t, f = current(k, l) -- undo may have returned the state of an earlier instant
    end
    return answer(v, n, t, f, l, key, 0)
  end

  function receipt(op, packed, pos)
    if op ~= RETURN and op ~= RENEW then
      return nil, pos
    end
    local taken = {}
    taken.t, taken.n, taken.f, pos = unpack('<ddd', packed, pos)
    return taken, pos
  end
end
