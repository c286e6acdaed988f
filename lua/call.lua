-- The loops: decide groups one after the other, read each key when it is first
-- used, and write at the end what has changed. A group is a call: all its takes
-- are charged, or none. Twin: call.go.
--
-- Arguments: ARGV[4]. Returns all answers.
--
-- What is denied must be known before anything is charged. So a group of several
-- checks is judged in two rounds: first its takes without a charge, each with the
-- cost of the earlier takes of its key added; then all checks with their charges,
-- or only the trials if a take is denied.
--
-- A trial instead of a take leaves that take's verdict out: if it is denied, it
-- counts one denied take less. Settlements are applied one after the other.
--
-- Whatever changes the state of a key calls keep, and only the last state of a key
-- is written.

-- The ops, as the caller numbers them.
local TAKE, TRIAL_INSTEAD, RETURN, FORCE, GRANT, RESET, RENEW, BACKFILL = 0, 2, 3, 4, 5, 6, 7, 8 -- a trial is 1
local ELSEWHERE_DENIED = 65535

-- Limits of one algorithm share a step.
local steps = {}

for i = 1, #limits do
  local l = limits[i]
  local step = steps[l.tag] or makers[l.tag]()
  steps[l.tag], l.step = step, step
end

-- By the number of a key: its state, as stored or to be stored; whether one was
-- stored; the text, the instant and the units that were read, if it has time to
-- spare; the error of reading; the limit under which to write it, and a set of
-- others if there are several. These tables cost less than one per key.
local N, T, F, P, stored, texts, T0, N0, failed, unsaved, under = {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}

-- read reads a key. A key that cannot be read fails all groups that use it.
local function read(k, l)
  local n, t, f, past, exists, text = (l.step.load or load_string)(KEYS[k])
  if n then
    N[k], T[k], F[k], P[k], stored[k] = n, t, f, past, exists
    if text and l.step.spare then
      texts[k], T0[k], N0[k] = text, t, n
    end
  else
    N[k], failed[k] = 0, t
  end
end

-- keep notes a new state. A step that writes for itself has stored it.
local function keep(k, n, t, f, past, l)
  N[k], T[k], F[k], P[k], stored[k] = n, t, f, past, true
  if not l.step.full_at then
    return
  end
  local first = unsaved[k]
  if not first then
    unsaved[k] = l
  elseif first ~= l then
    under[k] = under[k] or {}
    under[k][l] = true
  end
end

-- full_at returns when a state no longer matters under a limit. A state that only
-- remembers its era matters until all units have refilled that could be in use.
local function full_at(n, t, f, past, l)
  if n == 0 and f == 0 then
    n = l.cap
  end
  return l.step.full_at(n, t, f, past, l)
end

-- write stores a state until it no longer matters under any limit that changed it.
local function write(k, l)
  local n, t, f, past = N[k], T[k], F[k], P[k]
  if n == 0 and f == 0 and era_of(past) == 0 then
    call('DEL', KEYS[k])
    return
  end
  local until_then = full_at(n, t, f, past, l)
  if under[k] then
    for other in pairs(under[k]) do
      until_then = max(until_then, full_at(n, t, f, past, other))
    end
  end
  save(KEYS[k], texts[k], T0[k], N0[k], n, t, f, past, until_then, l)
end

-- current brings a key's state to now under a limit.
local function current(k, l)
  local n, t, f, past, changed = l.step.at(N[k], T[k], F[k], P[k], l, KEYS[k])
  if changed then
    keep(k, n, t, f, past, l)
  end
  return n, t, f, past
end

-- say adds to the reply.
local function say(text)
  replied = replied + 1
  replies[replied] = text
end

-- answer packs the answer for a state, with its era and its shift if it has them, or
-- with the instants of steps that have them.
local function answer(v, n, t, f, past, l, key, cost)
  local instants = l.step.instants
  if instants then
    return pack('<BI4dddd', v + 8, n, t, f, instants(n, t, f, past, l, key, cost))
  elseif past and (past.era > 0 or past.r > 0) then
    return pack('<BI4dddd', v + 16, n, t, f, past.era, past.shift)
  end
  return pack('<BI4dd', v, n, t, f)
end

-- take_one judges a check that needs so many units, unless it is known to fit, and
-- charges it if it fits and nothing else is denied. It returns the answer and the
-- verdict.
local function take_one(c, need, denied, fits)
  local k, l, units = c.key, c.limit, c.cost
  local step, key, v = l.step, KEYS[k], stored[k] and 0 or 2
  local n, t, f, past = current(k, l)
  local allowed = fits or (step.used and step.used(n, t, f, past, l) or n) + need <= l.burst
  if allowed then
    v = v + 1
    if denied == 0 then
      need = 0
      if units > 0 then
        v = v + 4
        if step.charge then
          n, t, f, past = step.charge(n, t, f, past, l, key, units, c.take)
        else
          n = n + units
        end
        keep(k, n, t, f, past, l)
      end
    end
  end
  return answer(v, n, t, f, past, l, key, need), allowed
end

-- take decides a group of takes and trials.
local function take(group, denied)
  local asked = {}
  for i = 1, #group do
    local c = group[i]
    if c.op == TAKE then
      local need = (asked[c.key] or 0) + c.cost
      asked[c.key] = need
      c.answer, c.allowed = take_one(c, need, 1, false)
      if not c.allowed then
        denied = denied + 1
      end
    end
  end
  for i = 1, #group do
    local c = group[i]
    if c.op == TAKE and denied > 0 then
      say(c.answer)
    else
      local others = denied
      if c.instead == ELSEWHERE_DENIED or (c.instead > 0 and not group[c.instead].allowed) then
        others = others - 1
      end
      say((take_one(c, c.cost, others, c.op == TAKE)))
    end
  end
end

-- settled returns the state after a settlement, given the state now. A force is a
-- charge that is cut to the cap.
local function settled(c, n, t, f, past)
  local op, l, units, taken = c.op, c.limit, c.cost, c.take
  local step, key = l.step, KEYS[c.key]
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
  elseif (n > 0 or f > 0) and era_of(past) == taken.era then
    return step.undo(n, t, f, past, l, key, units, taken)
  end
  return n, t, f, past
end

-- reset forgets a key. Steps that write for themselves know their takes by their
-- instants, so they need no era.
local function reset(k, l)
  if stored[k] and l.step.full_at then
    keep(k, 0, now, 0, new_era(P[k], now), l)
    return
  end
  call('DEL', KEYS[k])
  N[k], T[k], F[k], P[k], stored[k], unsaved[k] = 0, now, 0, nil, false, nil
end

-- settle applies a settlement, and returns its answer.
local function settle(c)
  local k, l, taken = c.key, c.limit, c.take
  local key, v = KEYS[k], stored[k] and 1 or 3
  if c.op == RESET then
    reset(k, l)
    return answer(v, 0, now, 0, P[k], l, key, 0)
  end
  if taken then -- undo compares it with the state that the take left
    taken.stored_n, taken.stored_t, taken.stored_f, taken.stored_past = N[k], T[k], F[k], P[k]
  end
  local n1, t1, f1, past1 = current(k, l)
  if c.cost == 0 then
    return answer(v, n1, t1, f1, past1, l, key, 0)
  end
  local n, t, f, past = settled(c, n1, t1, f1, past1)
  -- Other settlements write nothing if they change nothing.
  if c.op == FORCE or c.op == GRANT or n ~= n1 or t ~= t1 or f ~= f1 then
    keep(k, n, t, f, past, l)
  end
  n, t, f, past = current(k, l) -- undo may put back a state of an earlier instant
  return answer(v, n, t, f, past, l, key, 0)
end

local checks = ARGV[4]
local pos, size = 1, #checks
while pos <= size do
  local count, denied
  count, denied, pos = unpack('<HH', checks, pos)
  local group, failure = {}, nil
  for i = 1, count do
    local op, key, index, cost, taken
    op, key, index, cost, pos = unpack('<BHHI4', checks, pos)
    local l = limits[index]
    local c = { op = op, key = key, limit = l, cost = cost, instead = 0, answer = '', allowed = false, take = nil }
    if op == TRIAL_INSTEAD then
      c.instead, pos = unpack('<H', checks, pos)
    elseif op == RETURN or op == RENEW or op == BACKFILL then
      taken = {}
      taken.t, taken.n, taken.f, taken.at, taken.era, pos = unpack('<dI4ddd', checks, pos)
      taken.shift, taken.r, taken.w, pos = unpack('<ddd', checks, pos)
    end
    if l.step.told_apart then
      taken = taken or {}
      taken.id, taken.last, pos = unpack('<dI4', checks, pos)
    end
    if not N[key] then -- the first limit of a key reads it
      read(key, l)
    end
    failure = failure or failed[key]
    group[i], c.take = c, taken
  end
  local c = group[1]
  if failure then
    errors[#errors + 1] = failure
    say('\1')
  else
    say('\0')
    if c.op >= RETURN then
      for i = 1, count do
        say(settle(group[i]))
      end
    elseif count == 1 and c.op == TAKE then
      say((take_one(c, c.cost, denied, false)))
    else
      take(group, denied)
    end
  end
end
for k, l in pairs(unsaved) do
  write(k, l)
end
errors[1] = table.concat(replies)
return errors
