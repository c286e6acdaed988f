-- Takes of one bucket limit and one cost, each alone on its key: the commonest
-- scripts. A lone caller sends one take, and few callers send small batches. The
-- script decides them here, before it makes tables and functions. For one take,
-- they would cost half as much again.
--
-- takes.lua would give the same result. Only usual states are decided here:
-- there is no key, or its units drain. At the first other state, the general case
-- goes on with that take, and reads its key again. Other states do not parse, lie
-- ahead of the clock, hold more than the cap, or have drained for more parts than
-- doubles hold.
--
-- MGET reports a key of another type as missing. So in a batch, a missing key is
-- written with NX. If that fails, or if nothing is to be written, the general
-- case asks for the error. For one take, GET tells at once.
--
-- token_bucket.lua derives how units drain. state.lua has the forms of a state, its
-- TTL, and when INCRBY may write it. prelude.lua has the arguments and the reply.
--
-- Example: 100 per minute is r = 1 per w = 600 000. The key holds t0 = now -
-- 500 000 and n0 = 7 in the short form. No unit has drained, so t = t0, and a take
-- makes n = 8. Then full_at is now - 500 000 + 8 * 600 000. If the key lives for
-- another 4.302 s, INCRBY adds n - n0 = 1. Otherwise PSETEX stores the state for
-- 14.302 s, with the spare time of ten seconds.

-- The takes that are decided here, and their answers. The answers replace the
-- texts in the table of MGET, which spares a table.
local decided, first_answers = 0, ''

if not ARGV[3] and #ARGV[2] == 10 then
  local tag, r, w, burst, cap = unpack('<c2dddd', ARGV[1], 1)
  local count, times, _, units = unpack('<HHHI4', ARGV[2], 1)
  if times == 1 and units > 0 and (tag == 'tb' or tag == 'lb') then
    local values = count > 1 and call('MGET', spread(KEYS))
    for i = 1, count do
      local key, text = KEYS[i]
      if values then
        text = values[i]
      else
        text = pcall('GET', key)
      end
      local size, t0, n0, f0 = text and #text, nil, nil, 0 -- an error is a table of size 0
      if size == 19 then
        local x, y, z = byte(text, 17, 19)
        if x >= 48 and x <= 57 and y >= 48 and y <= 57 and z >= 48 and z <= 57 then
          t0, n0 = tonumber(sub(text, 1, 16)), x * 100 + y * 10 + z - 5328
        end
      elseif size and size > 0 and size <= 40 then
        t0, n0, f0 = string.match(text, '^(%d+):(%d+):(%d+)$')
        t0, n0, f0 = tonumber(t0), tonumber(n0), tonumber(f0)
      end

      local n, t, f, v = 0, time, 0, 2
      if text then
        local parts = t0 and (time - t0) * r
        if not (t0 and t0 >= 1e15 and t0 < time and n0 <= cap and f0 < r and parts < 9007199254740992) then
          break
        end
        parts, v = parts - f0, 0
        local rest = parts % w
        n = max(n0 - (parts - rest) / w, 0)
        if n > 0 then
          f = -rest % r
          t = time - (rest + f) / r
        end
      end

      if burst - n >= units then
        n, v = n + units, v + 5
        local full_at, spare, added = t + (n * w + f) / r, 0, false
        local left = (full_at - time) / 1000 + 2
        if text then
          spare = min(burst * w / r, 10000000)
          added = size == 19 and n <= 999 and f == 0 and full_at - t0 - n0 * w / r <= spare
            and call('PTTL', key) >= left
            and type(pcall('INCRBY', key, format('%d', (t - t0) * 1000 + n - n0))) == 'number'
        end
        if not added then
          local ms = format('%d', min(left + spare / 1000, 3153600000000))
          local state
          if n <= 999 and f == 0 and t >= 1e15 then
            state = format('%d%03d', t, n)
          else
            state = format('%d:%d:%d', t, n, f)
          end
          if text or not values then
            call('PSETEX', key, ms, state)
          elseif not call('SET', key, state, 'PX', ms, 'NX') then
            break
          end
        end
      elseif values and not text then
        break
      end

      if not values then
        if f == 0 then
          return pack('<ddd', time, n * 32 + v, t)
        end
        return pack('<dddd', time, n * 32 + v + 16, t, f)
      end
      decided = i
      if f == 0 then
        values[i] = pack('<dd', n * 32 + v, t)
      else
        values[i] = pack('<ddd', n * 32 + v + 16, t, f)
      end
    end
    if decided > 0 then
      first_answers = table.concat(values, '', 1, decided)
      if decided == count then
        return pack('<d', time) .. first_answers
      end
    end
  end
end
