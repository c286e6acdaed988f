-- Takes that are alone on their keys: the commonest checks. They are decided with
-- as few commands as possible. Twin: lone.go.
--
-- Arguments: ARGV[2]. The script returns here if there is nothing else. lone.lua may
-- have decided the first takes.
--
-- Most takes are also alone in their call. Several of them, of one cost, may be
-- on one key. Then the state is read and brought to now once, and written once.
-- The first k of them fit, as many as the room holds.
--
-- The takes of another call are judged first. They are charged if none is denied.
--
-- MGET reports a key of another type as missing. So a missing key is written
-- with NX, which fails for such a key. If the call has other takes, GET tells
-- before any of them is written.
--
-- Example: a burst of 4 with n = 2 now, and three takes of 1. The room of 2 holds
-- k = 2. The answers have n = 3 and n = 4, charged, and n = 4, denied. One write
-- stores n = 4.

for i = 1, distinct do
  local l = limits[i]
  l.step = steps[l.tag]
  if l.step.spare then
    l.spare = min(ceil(l.burst * l.w / l.r), 10000000)
  end
end

local replies, errors, replied = { pack('<d', time) .. first_answers, false }, { '' }, 1

if callers_clock then
  replies[1] = pack('<dd', time, now)
end

local takes = ARGV[2]
if takes ~= '' then
  values = values or call('MGET', spread(KEYS, 1, groups and unpack('<H', groups, 1)))
  local i, pos, size = decided, run, #takes
  while pos <= size do
    local alike, times, index, units
    alike, times, index, units, pos = unpack('<HHHd', takes, pos)
    if times > 0 then
      local l = limits[index]
      local at, used, full_at, burst = l.step.at, l.step.used, l.step.full_at, l.burst
      for _ = 1 + done, alike do
        i = i + 1
        local key, text, n, t, f, v = KEYS[i], values[i], 0, now, 0, 2
        local t0, n0, changed, failure
        if text then
          t0, n0, f = decode(text)
          if t0 then
            n, t, f, changed = at(n0, t0, f, l)
            v = 0
          else
            f = 0
          end
        end
        local room, k = burst - n, 0
        if used then
          room = burst - used(n, t, f, l)
        end
        if room >= units and units > 0 then
          k = times == 1 and 1 or min(times, floor(room / units))
          n = n + k * units
          failure = save(key, text, t0, n0, n, t, f, full_at(n, t, f, l), l)
        elseif changed then
          save(key, text, t0, n0, n, t, f, full_at(n, t, f, l), l)
        elseif not text then
          failure = pcall('GET', key)
          failure = failure and failure.err
        end
        for j = 1, times do
          replied = replied + 1
          local v1, n1 = v, n
          if j <= k then
            v1, v = v + 5, 0 -- not in the other order: see sliding_window_counter.lua
            if j < k then
              n1 = n - (k - j) * units
            end
          elseif units == 0 and room >= 0 then
            v1 = v + 1
          end
          if failure then -- each take has its own answer, and so its own error
            replies[replied], errors[#errors + 1] = pack('<d', -1), failure
          elseif f == 0 then
            replies[replied] = pack('<dd', n1 * 32 + v1, t)
          else
            replies[replied] = pack('<ddd', n1 * 32 + v1 + 16, t, f)
          end
        end
      end
    else
      local count, terms, costs = index, {}, {}
      for j = 1, count do
        index, costs[j], pos = unpack('<Hd', takes, pos)
        terms[j] = limits[index]
      end
      local N, T, F, V, T0, N0, dirty = {}, {}, {}, {}, {}, {}, {}
      for _ = 1 + done, alike do
        local denied, failure = false, nil
        for j = 1, count do -- judge
          local l, text, n, t, f, v = terms[j], values[i + j], 0, now, 0, 2
          local t0, n0, changed
          if text then
            t0, n0, f = decode(text)
            if t0 then
              n, t, f, changed = l.step.at(n0, t0, f, l)
              v = 0
            else
              f = 0
            end
          else
            local other = pcall('GET', KEYS[i + j])
            failure = failure or (other and other.err)
          end
          local used = l.step.used
          if (used and used(n, t, f, l) or n) + costs[j] <= l.burst then
            v = v + 1
          else
            denied = true
          end
          N[j], T[j], F[j], V[j], T0[j], N0[j], dirty[j] = n, t, f, v, t0 or false, n0, changed or false
        end
        for j = 1, failure and 0 or count do -- charge
          local l, n, t, f, v, write = terms[j], N[j], T[j], F[j], V[j], dirty[j]
          if not denied and costs[j] > 0 then
            n, v, write = n + costs[j], v + 4, true
          end
          if write then
            save(KEYS[i + j], values[i + j], T0[j], N0[j], n, t, f, l.step.full_at(n, t, f, l), l)
          end
          replied = replied + 1
          if f == 0 then
            replies[replied] = pack('<dd', n * 32 + v, t)
          else
            replies[replied] = pack('<ddd', n * 32 + v + 16, t, f)
          end
        end
        if failure then
          replied = replied + 1
          replies[replied], errors[#errors + 1] = pack('<d', -1), failure
        end
        i = i + count
      end
    end
    done = 0
  end
end

if not groups then
  errors[1] = table.concat(replies)
  return errors[2] and errors or errors[1]
end
