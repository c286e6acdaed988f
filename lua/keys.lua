-- The keys of the groups. Each is read when it is first used, changed in memory
-- by the checks, and written at the end. So a key that many groups use is
-- written once.

local GRANTED = 'granted' -- in unsaved: the key keeps its TTL

-- By the number of a key: its state, as stored or to be stored; whether a state
-- was stored; the limit under which to write it; and the text, the instant and
-- the units that were read. These tables cost less than one table per key.
local N, T, F = { false, false, false, false }, { 0, 0, 0, 0 }, { 0, 0, 0, 0 }
local stored, unsaved = { 0, 0, 0, 0 }, { false, false, false, false }
local texts, T0, N0 = { false, false, false, false }, { false, false, false, false }, { 0, 0, 0, 0 }

-- By the number of a key, made when needed: the other limits that have changed
-- it; the error of reading it.
local under, failed

-- read reads a key. A key that cannot be read fails all groups that use it.
local function read(k, step)
  local key, n, t, f, exists = KEYS[k], 0, 0, 0, false
  if step.load then
    n, t, f, exists = step.load(key)
  else
    local text = pcall('GET', key)
    if type(text) == 'table' then
      n, t = nil, text.err
    elseif text then
      t, n, f = decode(text)
      texts[k], T0[k], N0[k] = text, t or false, n
      exists = t ~= nil
      if not t then
        n, t, f = 0, 0, 0
      end
    end
  end
  if not n then
    failed = failed or {}
    n, failed[k] = 0, t
  end
  N[k], T[k], F[k], stored[k] = n, t, f, exists
end

-- keep notes a new state. A step that writes for itself has stored it.
local function keep(k, n, t, f, l, granted)
  N[k], T[k], F[k], stored[k] = n, t, f, n > 0 or f > 0
  local first = unsaved[k]
  if first == l or not l.step.full_at then
    return
  elseif granted then
    unsaved[k] = first or GRANTED
  elseif not first or first == GRANTED then
    unsaved[k] = l
  else
    under = under or {}
    under[k] = under[k] or {}
    under[k][l] = true
  end
end

-- current brings a key's state to now under a limit.
local function current(k, l)
  local n, t, f, changed = l.step.at(N[k], T[k], F[k], l, KEYS[k])
  if changed then
    keep(k, n, t, f, l)
  end
  return n, t, f
end

-- answer packs the answer for a state, with the instants of steps that have them.
local function answer(v, n, t, f, l, key, cost)
  local instants = l.step.instants
  if instants then
    return pack('<dddd', min(n, 1073741824) * 32 + v + 8, t, instants(n, t, f, l, key, cost))
  elseif f == 0 then
    return pack('<dd', n * 32 + v, t)
  end
  return pack('<ddd', n * 32 + v + 16, t, f)
end
