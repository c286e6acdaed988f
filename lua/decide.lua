-- The loop: reads each distinct key once, decides groups one after the other on
-- what is known of the keys, and writes what changed. A group is a call: all
-- its takes are charged, or none. Twin: algorithms/decide.go.

local ELSEWHERE_DENIED = 65535

local limits = {}
do
  local pos, size = 1, #ARGV[2]
  while pos <= size do
    local l = {}
    local row
    row, l.r, l.w, l.a, l.b, l.burst, l.cap, l.window, pos = unpack('<Bddddddd', ARGV[2], pos)
    l.step = rows[row]
    limits[#limits + 1] = l
  end
end

-- By key: its state, as stored or to be stored; whether one was stored; the
-- error of reading it; the limits under which it has to be written.
local N, T, F, stored, failed, unsaved = {}, {}, {}, {}, {}, {}

local function read(k, l)
  local n, t, f, exists = l.step.load(KEYS[k])
  if n then
    N[k], T[k], F[k], stored[k] = n, t, f, exists
  else
    N[k], failed[k] = 0, t
  end
end

local function keep(k, n, t, f, l)
  N[k], T[k], F[k], stored[k] = n, t, f, true
  if l.step.full_at then
    local under = unsaved[k]
    if not under then
      unsaved[k] = { l }
    elseif under[#under] ~= l then
      under[#under + 1] = l
    end
  end
end

local function write(k, under)
  local n, t, f, full_at = N[k], T[k], F[k], 0
  if n == 0 and f == 0 then
    call('DEL', KEYS[k])
    return
  end
  for i = 1, #under do
    full_at = max(full_at, under[i].step.full_at(n, t, f, under[i]))
  end
  call('SET', KEYS[k], encode(t, n, f), 'PX', lifetime(full_at))
end

-- current brings a key's state to now under a limit.
local function current(k, l)
  local n, t, f, changed = l.step.at(N[k], T[k], F[k], l, KEYS[k])
  if changed then
    keep(k, n, t, f, l)
  end
  return n, t, f
end

local replies, errors = { pack('<d', now) }, {}

local function reply(v, n, t, f, k, l, need)
  local u = 0
  if l.step.instants then
    f, u = l.step.instants(n, t, need, l, KEYS[k])
  end
  return pack('<BI4ddd', v, n, t, f, u)
end

-- look judges a check, and returns its verdict and its answer, uncharged.
local function look(c, need)
  local k, l = c.key, c.limit
  local missing = stored[k] and 0 or 2
  local n, t, f = current(k, l)
  local allowed = l.step.used(n, t, f, l) + need <= l.burst
  return allowed, reply((allowed and 1 or 0) + missing, n, t, f, k, l, need)
end

-- charge takes a check's cost, and returns its answer.
local function charge(c)
  local k, l = c.key, c.limit
  local v = 1 + (stored[k] and 0 or 2)
  local n, t, f = current(k, l)
  if c.cost > 0 then
    v = v + 4
    n, t, f = l.step.charge(n, t, f, c.cost, KEYS[k], l)
    keep(k, n, t, f, l)
  end
  return reply(v, n, t, f, k, l, 0)
end

-- take decides a group of takes and trials.
local function take(group, denied)
  local asked, answers = {}, {}
  for i = 1, #group do
    local c = group[i]
    if c.op == TAKE then
      local need = (asked[c.key] or 0) + c.cost
      asked[c.key] = need
      c.allowed, answers[i] = look(c, need)
      if not c.allowed then
        denied = denied + 1
      end
    end
  end
  for i = 1, #group do
    local c = group[i]
    if c.op == TAKE and denied == 0 then
      answers[i] = charge(c)
    end
  end
  for i = 1, #group do
    local c = group[i]
    if c.op ~= TAKE then
      local others = denied
      if c.instead == ELSEWHERE_DENIED or (c.instead > 0 and not group[c.instead].allowed) then
        others = others - 1
      end
      c.allowed, answers[i] = look(c, c.cost)
      if c.allowed and others == 0 then
        answers[i] = charge(c)
      end
    end
  end
  return answers
end

-- settle applies a settlement, and returns its answer.
local function settle(c)
  local k, l = c.key, c.limit
  local name, step, v = KEYS[k], l.step, 1 + (stored[k] and 0 or 2)
  local n0, t0, f0 = N[k], T[k], F[k]
  local n1, t1, f1 = current(k, l)
  local n, t, f = n1, t1, f1
  if c.op == RESET then
    call('DEL', name)
    unsaved[k] = nil
    N[k], T[k], F[k], stored[k] = 0, now, 0, false
    return reply(v, 0, now, 0, k, l, 0)
  elseif c.cost == 0 then
    return reply(v, n, t, f, k, l, 0)
  elseif c.op == FORCE then
    n, t, f = step.force(n, t, f, c.cost, name, l)
  elseif c.op == GRANT then
    n, t, f = step.grant(n, t, f, c.cost, name)
  elseif n > 0 or f > 0 then
    n, t, f = step.undo(n0, t0, f0, n, t, f, c.cost, c.t, c.n, c.f, l, name)
  end
  if c.op ~= RETURN or n ~= n1 or t ~= t1 or f ~= f1 then
    keep(k, n, t, f, l)
  end
  n, t, f = current(k, l) -- undo may put back an earlier instant's
  return reply(v, n, t, f, k, l, 0)
end

local function check(pos)
  local c = {}
  local limit
  c.op, c.key, limit, c.cost, pos = unpack('<BHHI4', ARGV[3], pos)
  c.limit, c.instead = limits[limit], 0
  if c.op == TRIAL_INSTEAD then
    c.instead, pos = unpack('<H', ARGV[3], pos)
  elseif c.op == RETURN then
    c.t, c.n, c.f, pos = unpack('<dI4d', ARGV[3], pos)
  end
  return c, pos
end

local function decide(pos)
  local count, denied
  count, denied, pos = unpack('<HH', ARGV[3], pos)
  local group, failure = {}, nil
  for i = 1, count do
    group[i], pos = check(pos)
    local k = group[i].key
    if not N[k] then
      read(k, group[i].limit)
    end
    failure = failure or failed[k]
  end
  if failure then
    errors[#errors + 1] = failure
    replies[#replies + 1] = '\1'
    return pos
  end
  replies[#replies + 1] = '\0'
  if group[1].op < RETURN then
    for _, answer in ipairs(take(group, denied)) do
      replies[#replies + 1] = answer
    end
  else
    for i = 1, count do
      replies[#replies + 1] = settle(group[i])
    end
  end
  return pos
end

do
  local pos, size = 1, #ARGV[3]
  while pos <= size do
    pos = decide(pos)
  end
end
for k, under in pairs(unsaved) do
  write(k, under)
end
table.insert(errors, 1, table.concat(replies))
return errors
