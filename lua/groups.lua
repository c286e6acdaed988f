-- Groups of takes and trials, each of a key of its own. Twin: call.go.
--
-- Arguments: ARGV[4]. If all groups are of this kind, the script returns here, before it makes the functions that other
-- groups need. Otherwise the loop decides the first group of another kind and all after it.
--
-- Nothing is charged before all denials are known. So one call of decide judges a check, decides all that follow it in
-- the group, and then charges it. The state of each check stays in local variables, which cost less than tables. The
-- order of the charges does not matter, because no other check of the group has the key. The next group reads the keys
-- that this one wrote.
--
-- Example: takes A, B and C, where B is denied. decide(A) judges A and calls decide(B), which judges B and calls
-- decide(C), which judges C. They return in the order C, B, A. Each then knows that one take is denied, and charges
-- nothing.

-- The ops, as the caller numbers them. Settlements follow.
local TAKE, TRIAL_INSTEAD = 0, 2 -- a trial is 1
local ELSEWHERE_DENIED = 65535

local groups, group = ARGV[4], 1 -- the place of the next group
local steps = {} -- by the tag of an algorithm: its limits share a step

-- step_of returns the step of a limit.
local function step_of(l)
  local tag = l.tag
  local step = steps[tag] or makers[tag]()
  steps[tag], l.step = step, step
  return step
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

if not settles then
  local DEEPEST = 64 -- calls of decide: Lua's stack bounds them
  local seen = { 0, 0, 0, 0 } -- by the number of a key: the last group with a check on it
  local refused -- made with the first denial: the places of denied takes in the reply

  -- decide decides the checks of a group from one on. place is its place in the reply, and denied the number of takes
  -- that are denied before it and elsewhere. It returns how many takes are denied in all, and the place after the
  -- group. It returns nil if the loop must decide the group.
  local function decide(place, pos, left, denied)
    local op, k, index, units, except, id
    op, k, index, units, pos = unpack('<BHHI4', groups, pos)
    if seen[k] == group then
      return nil
    end
    seen[k] = group
    if op == TRIAL_INSTEAD then
      except, pos = unpack('<H', groups, pos)
    end
    local l, key = limits[index], KEYS[k]
    local step = l.step or step_of(l)
    if step.told_apart then
      id = { id = 0, last = 0 }
      id.id, id.last, pos = unpack('<dI4', groups, pos)
    end
    local n, t, f, past, exists, text = (step.load or load_string)(key)
    if not n then
      return nil
    end
    local v, need, t0, n0, changed = exists and 0 or 2, units, step.spare and text and t, n
    n, t, f, past, changed = step.at(n, t, f, past, l, key)
    local used = step.used
    local fits = (used and used(n, t, f, past, l) or n) + units <= l.burst
    if op == TAKE and not fits then
      denied, refused = denied + 1, refused or {}
      refused[place] = true
    end
    if left > 1 then
      denied, pos = decide(place + 1, pos, left - 1, denied)
      if not denied then
        return nil
      end
    end
    local others = denied
    if except and (except == ELSEWHERE_DENIED or (refused and refused[replied + 1 + except])) then
      others = others - 1
    end
    if fits then
      v = v + 1
      if others == 0 then
        need = 0
        if units > 0 then
          v, changed = v + 4, true
          if step.charge then
            n, t, f, past = step.charge(n, t, f, past, l, key, units, id)
          else
            n = n + units
          end
        end
      end
    end
    replies[place] = answer(v, n, t, f, past, l, key, need)
    local full_at = changed and step.full_at
    if full_at then
      save(key, text, t0, n0, n, t, f, past, full_at(n + f > 0 and n or l.cap, t, f, past, l), l)
    end
    return denied, pos
  end

  while group <= #groups do
    local count, denied, pos = unpack('<HH', groups, group)
    if count > DEEPEST then
      break
    end
    denied, pos = decide(replied + 2, pos, count, denied)
    if not denied then
      break
    end
    replies[replied + 1] = '\0'
    replied, group = replied + 1 + count, pos
  end
  if group > #groups then
    errors[1] = table.concat(replies)
    return errors
  end
end
