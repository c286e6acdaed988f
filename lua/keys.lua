-- The keys of the groups. Each is read when it is first used, changed in memory
-- by the checks, and written at the end. So a key that many groups use is
-- written once.

local GRANTED = 'granted' -- in unsaved: the key keeps its TTL

-- By the number of a key: its state, as stored or to be stored; whether a state
-- was stored; the limit under which to write it; and the text, the instant and
-- the units that were read. These tables cost less than one table per key.
local N, T, F = { false, false, false, false }, { 0, 0, 0, 0 }, { 0, 0, 0, 0 }
local stored, unsaved = { 0, 0, 0, 0 }, { false, false, false, false }
local texts, T0, N0 = { false, false, false, false }, { 0, 0, 0, 0 }, { 0, 0, 0, 0 }

-- By the number of a key, made when needed: the other limits that have changed
-- it; the error of reading it.
local under, failed

-- fail notes that a key cannot be read. All groups that use it fail.
local function fail(k, err)
  failed = failed or {}
  N[k], failed[k] = 0, err
end

-- read reads a key.
local function read(k, step)
  if step.load then
    local n, t, f, exists = step.load(KEYS[k])
    if not n then
      return fail(k, t)
    end
    N[k], T[k], F[k], stored[k] = n, t, f, exists
    return
  end
  local text = pcall('GET', KEYS[k])
  N[k], T[k], F[k], stored[k], T0[k] = 0, 0, 0, false, false
  if not text then
    return
  elseif type(text) == 'table' then
    return fail(k, text.err)
  end
  local t, n, f = decode(text)
  texts[k], T0[k], N0[k] = text, t or false, n
  if t then
    N[k], T[k], F[k], stored[k] = n, t, f, true
  end
end

-- keep notes a new state. A step that writes for itself has stored it.
local function keep(k, n, t, f, l, granted)
  N[k], T[k], F[k], stored[k] = n, t, f, true
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

-- write stores a state until it no longer matters under any limit that changed it.
local function write(k, l)
  local n, t, f = N[k], T[k], F[k]
  if n == 0 and f == 0 then
    call('DEL', KEYS[k])
    return
  elseif l == GRANTED then
    save(KEYS[k], texts[k], T0[k], N0[k], n, t, f, nil, limits[1])
    return
  end
  local until_then = l.step.full_at(n, t, f, l)
  if under and under[k] then
    for other in pairs(under[k]) do
      until_then = max(until_then, other.step.full_at(n, t, f, other))
    end
  end
  save(KEYS[k], texts[k], T0[k], N0[k], n, t, f, until_then, l)
end
