-- The general case: groups of checks. A group is a call: all its takes are
-- charged, or none. Twin: call.go.
--
-- Arguments: ARGV[4]. Returns all answers.
--
-- The takes of a group are judged first, each with the cost of the earlier
-- takes of its key added. Then the checks are charged in order: takes if no
-- take is denied, and trials. A take is charged to the state that was judged,
-- unless another take of the group has changed it since.
--
-- A trial instead of a take ignores that take's verdict: if the take is denied,
-- the trial counts one denied take less.
--
-- Example: a group has the takes A (key 1, cost 2) and B (key 1, cost 3), with
-- 4 units free. A needs 2 and fits. B needs 2 + 3 = 5 and is denied. So neither
-- is charged. A trial instead of B counts 1 - 1 = 0 denied takes, and is
-- charged if it fits itself.
--
-- A pair is a take (FIRST) and the next one, which depends on it. Only the second
-- denies the group, and it speaks for both: ELSE is allowed if one of the two fits,
-- and is charged if the first does not fit. RESERVED may use twice its burst if the
-- first fits. Their keys are used once in the group.
--
-- The loop is not in a function, because making a function costs as much as
-- deciding a check. Tables begin with four places, because growing costs more.

-- The ops, as the caller numbers them. Settlements follow.
local TAKE, RESERVED, ELSE, TRIAL, TRIAL_INSTEAD, FIRST = 0, 1, 2, 3, 4, 11
local ELSEWHERE_DENIED = 65535 -- no group has so many checks, so fits has nothing there

-- By the place of a check in its group: its op, and its need, with the earlier
-- takes of its key; the take that a trial ignores, or the first of a pair; the
-- receipt of a take. Then the verdict, the state now, and the answer if it must be
-- packed at once.
local ops, keys, terms = { 0, 0, 0, 0 }, { 0, 0, 0, 0 }, { 0, 0, 0, 0 }
local costs, needs, before, taken = { 0, 0, 0, 0 }, { 0, 0, 0, 0 }, {}, {}
local fits, n_now, t_now, f_now = { 0, 0, 0, 0 }, { 0, 0, 0, 0 }, { 0, 0, 0, 0 }, { 0, 0, 0, 0 }
local answers = {}

local asked = {} -- by the number of a key: the sum of the group's takes so far

-- judge returns whether so many units fit under a limit, and the state now. The
-- burst is the most that may be in use, unless most says otherwise.
local function judge(k, l, need, most)
  local n, t, f = current(k, l)
  local used = l.step.used
  return (used and used(n, t, f, l) or n) + need <= (most or l.burst), n, t, f
end

local pos, size = 3, #groups
while pos <= size do
  local count, denied, failure, again
  count, denied, pos = unpack('<HH', groups, pos)
  for i = 1, count do
    local op, k, index, cost, take
    op, k, index, cost, pos = unpack('<BHHd', groups, pos)
    local l = limits[index]
    local step = l.step
    ops[i], keys[i], terms[i], costs[i], needs[i] = op, k, l, cost, cost
    if op == TAKE then
      if count > 1 then
        if asked[k] then
          needs[i], again = asked[k] + cost, true
        end
        asked[k] = needs[i]
      end
    elseif op <= TRIAL_INSTEAD and op ~= TRIAL then
      before[i], pos = unpack('<H', groups, pos)
    elseif settles then
      take, pos = receipt(op, groups, pos)
    end
    if step.told_apart then
      take = take or {}
      take.id, take.last, pos = unpack('<dI4', groups, pos)
    end
    taken[i] = take or false
    if not N[k] then
      read(k, step)
    end
    failure = failure or failed and failed[k]
  end

  if failure then
    replied = replied + 1
    replies[replied], errors[#errors + 1] = pack('<d', -1), failure
  elseif settles then
    for i = 1, count do
      replied = replied + 1
      replies[replied] = settle(ops[i], keys[i], terms[i], costs[i], taken[i])
    end
  else
    for i = 1, count do -- judge
      local op = ops[i]
      if op <= ELSE or op == FIRST then
        local k, l = keys[i], terms[i]
        local first = (op == RESERVED or op == ELSE) and (before[i] == 0 or fits[before[i]])
        local fit, n, t, f = judge(k, l, needs[i], op == RESERVED and first and needs[i] <= l.burst and l.cap)
        if op == ELSE and first then
          fit, costs[i] = true, 0 -- the first is charged instead
        end
        fits[i], n_now[i], t_now[i], f_now[i] = fit, n, t, f
        if not fit and op ~= FIRST then
          denied = denied + 1
        end
        if again then -- a step that writes for itself may forget values that this answer needs
          answers[i] = answer((stored[k] and 0 or 2) + (fit and 1 or 0), n, t, f, l, KEYS[k], needs[i])
        end
      end
    end
    for i = 1, count do -- charge
      local op, k, l, units, need = ops[i], keys[i], terms[i], costs[i], needs[i]
      local step, v, others, fit = l.step, stored[k] and 0 or 2, denied, fits[i]
      local n, t, f = n_now[i], t_now[i], f_now[i]
      if op > ELSE and op ~= FIRST then
        fit, n, t, f = judge(k, l, units)
        if op == TRIAL_INSTEAD and (before[i] == ELSEWHERE_DENIED or (before[i] > 0 and not fits[before[i]])) then
          others = others - 1
        end
      elseif again and denied == 0 then
        n, t, f = current(k, l)
      end
      if fit then
        v = v + 1
        if others == 0 then
          need = 0
          if units > 0 then
            v = v + 4
            if step.charge then
              n, t, f = step.charge(n, t, f, l, KEYS[k], units, taken[i])
            else
              n = n + units
            end
            keep(k, n, t, f, l)
          end
        end
      end
      replied = replied + 1
      if again and denied > 0 and (op <= ELSE or op == FIRST) then
        replies[replied] = answers[i]
      else
        replies[replied] = answer(v, n, t, f, l, KEYS[k], need)
      end
    end
  end
  if count > 1 then
    for i = 1, count do
      asked[keys[i]] = nil
    end
  end
end

-- A key is stored until it no longer matters under any limit that changed it.
for k = 1, #KEYS do
  local l = unsaved[k]
  if l then
    local key, n, t, f, until_then = KEYS[k], N[k], T[k], F[k], nil
    if l == GRANTED then
      l = limits[1]
    else
      until_then = l.step.full_at(n, t, f, l)
    end
    if under and under[k] then
      for other in pairs(under[k]) do
        until_then = max(until_then, other.step.full_at(n, t, f, other))
      end
    end
    if n == 0 and f == 0 then
      call('DEL', key)
    else
      save(key, texts[k], T0[k], N0[k], n, t, f, until_then, l)
    end
  end
end
errors[1] = table.concat(replies)
return errors[2] and errors or errors[1]
