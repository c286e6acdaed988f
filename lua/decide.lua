-- The loops: read each distinct key once, decide groups one after the other on
-- what is known of the keys, and write what changed. A group is a call: all its
-- takes are charged, or none. Twin: algorithms/decide.go.

local TAKE, TRIAL_INSTEAD, RETURN, FORCE, GRANT, RESET, RENEW, BACKFILL = 0, 2, 3, 4, 5, 6, 7, 8 -- trial is 1
local ELSEWHERE_DENIED = 65535

-- In the order of the numbers that limits are packed with.
local makers = {
  token_bucket, leaky_bucket, sliding_window_counter, sliding_window_log, fixed_window, calendar_window, concurrent,
}
local CONCURRENT = 7
local steps = {}

for i = 1, #limits do
  local l = limits[i]
  local step = steps[l.row] or makers[l.row]()
  steps[l.row], l.step = step, step
end

-- By key: its state, as stored or to be stored; whether one was stored; the
-- error of reading it; the limit under which it has to be written, and a list
-- of those if there are several.
local N, T, F, stored, failed, unsaved, under = {}, {}, {}, {}, {}, {}, {}

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

local function write(k, l)
  local n, t, f = N[k], T[k], F[k]
  if n == 0 and f == 0 then
    call('DEL', KEYS[k])
    return
  end
  local full_at = l.step.full_at(n, t, f, l)
  for other in pairs(under[k] or {}) do
    full_at = max(full_at, other.step.full_at(n, t, f, other))
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

local function say(text)
  replied = replied + 1
  replies[replied] = text
end

local function reply(v, n, t, f, k, l, need)
  local u = 0
  if l.step.instants then
    f, u = l.step.instants(n, t, need, l, KEYS[k])
  end
  return pack('<BI4ddd', v, n, t, f, u)
end

-- take_one judges what a check needs, unless it is known to fit, and charges
-- its units if it does and nothing else is denied. It returns the answer and
-- the verdict.
local function take_one(k, l, units, need, denied, fits, id)
  local v = stored[k] and 0 or 2
  local n, t, f = current(k, l)
  local allowed = fits or l.step.used(n, t, f, l) + need <= l.burst
  if allowed then
    v = v + 1
    if denied == 0 then
      need = 0
      if units > 0 then
        v = v + 4
        n, t, f = l.step.charge(n, t, f, units, KEYS[k], l, id)
        keep(k, n, t, f, l)
      end
    end
  end
  return reply(v, n, t, f, k, l, need), allowed
end

-- take decides a group of takes and trials: what is denied has to be known
-- before anything is charged.
local function take(group, denied)
  local asked = {}
  for i = 1, #group do
    local c = group[i]
    if c.op == TAKE then
      local need = (asked[c.key] or 0) + c.cost
      asked[c.key] = need
      c.answer, c.allowed = take_one(c.key, c.limit, c.cost, need, 1)
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
      say((take_one(c.key, c.limit, c.cost, c.cost, others, c.op == TAKE, c.id)))
    end
  end
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
    n, t, f = step.force(n, t, f, c.cost, name, l, c.id)
  elseif c.op == GRANT then
    n, t, f = step.grant(n, t, f, c.cost, name)
  elseif c.op == BACKFILL then
    n, t, f = step.backfill(n, t, f, c.cost, l, name, c.at)
  elseif c.op == RENEW then
    if step.renew then
      n, t, f = step.renew(n, t, f, c.t, c.n, c.f, l, name)
    end
  elseif n > 0 or f > 0 then
    n, t, f = step.undo(n0, t0, f0, n, t, f, c.cost, c.t, c.n, c.f, l, name, c.at)
  end
  if c.op == FORCE or c.op == GRANT or n ~= n1 or t ~= t1 or f ~= f1 then
    keep(k, n, t, f, l)
  end
  n, t, f = current(k, l) -- undo may put back an earlier instant's
  return reply(v, n, t, f, k, l, 0)
end

local checks = ARGV[4]
local pos, size = 1, #checks
while pos <= size do
  local count, denied
  count, denied, pos = unpack('<HH', checks, pos)
  local group, failure = {}, nil
  for i = 1, count do
    local op, key, index, cost
    op, key, index, cost, pos = unpack('<BHHI4', checks, pos)
    local c = { op = op, key = key, limit = limits[index], cost = cost, instead = 0, answer = '', allowed = false }
    if op == TRIAL_INSTEAD then
      c.instead, pos = unpack('<H', checks, pos)
    elseif op == RETURN or op == RENEW or op == BACKFILL then
      c.t, c.n, c.f, c.at, pos = unpack('<dI4dd', checks, pos)
    end
    if c.limit.row == CONCURRENT then
      c.id, pos = unpack('<d', checks, pos)
    end
    if not N[key] then
      read(key, c.limit)
    end
    failure = failure or failed[key]
    group[i] = c
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
      say((take_one(c.key, c.limit, c.cost, c.cost, denied, false, c.id)))
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
