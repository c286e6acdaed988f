-- The keys of the groups. Each is read when it is first used, changed in memory
-- by the checks, and written at the end. So a key that many groups use is
-- written once.

-- By the number of a key: its state, as stored or to be stored; whether a state
-- was stored; the limit under which to write it; and the text, the instant and
-- the units that were read, if it has time to spare. These tables cost less
-- than one table per key.
local N, T, F, P = { false, false, false, false }, { 0, 0, 0, 0 }, { 0, 0, 0, 0 }, { 0, 0, 0, 0 }
local stored, unsaved = { 0, 0, 0, 0 }, { false, false, false, false }
local texts, T0, N0 = { false, false, false, false }, { 0, 0, 0, 0 }, { 0, 0, 0, 0 }

-- By the number of a key, made when needed: the other limits that have changed
-- it; the error of reading it.
local under, failed

-- read reads a key. A key that cannot be read fails all groups that use it.
local function read(k, step)
  local n, t, f, past, exists, text = (step.load or load_string)(KEYS[k])
  if n then
    N[k], T[k], F[k], P[k], stored[k] = n, t, f, past or false, exists
    if text and step.spare then
      texts[k], T0[k], N0[k] = text, t, n
    end
  else
    failed = failed or {}
    N[k], failed[k] = 0, t
  end
end

-- keep notes a new state. A step that writes for itself has stored it.
local function keep(k, n, t, f, past, l)
  N[k], T[k], F[k], P[k], stored[k] = n, t, f, past or false, true
  local first = unsaved[k]
  if first ~= l and l.step.full_at then
    if first then
      under = under or {}
      under[k] = under[k] or {}
      under[k][l] = true
    else
      unsaved[k] = l
    end
  end
end

-- current brings a key's state to now under a limit.
local function current(k, l)
  local n, t, f, past, changed = l.step.at(N[k], T[k], F[k], P[k], l, KEYS[k])
  if changed then
    keep(k, n, t, f, past, l)
  end
  return n, t, f, past
end

-- judge returns whether so many units fit under a limit, and the state now.
local function judge(k, l, need)
  local n, t, f, past = current(k, l)
  local used = l.step.used
  return (used and used(n, t, f, past, l) or n) + need <= l.burst, n, t, f, past
end

-- full_at returns when a state no longer matters under a limit. A state that
-- only remembers its era matters until all units have refilled that could be in
-- use.
local function full_at(n, t, f, past, l)
  return l.step.full_at(n + f > 0 and n or l.cap, t, f, past, l)
end

-- write stores a state until it no longer matters under any limit that changed it.
local function write(k, l)
  local n, t, f, past = N[k], T[k], F[k], P[k]
  if n == 0 and f == 0 and era_of(past) == 0 then
    call('DEL', KEYS[k])
    return
  end
  local until_then = full_at(n, t, f, past, l)
  if under and under[k] then
    for other in pairs(under[k]) do
      until_then = max(until_then, full_at(n, t, f, past, other))
    end
  end
  save(KEYS[k], texts[k], texts[k] and T0[k], N0[k], n, t, f, past, until_then, l)
end
