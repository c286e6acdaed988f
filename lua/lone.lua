-- Takes of buckets, each alone on its key: the commonest scripts. A lone caller
-- sends one take or one call, and few callers send small batches. The script decides
-- them here, before it makes tables and functions. For one take, they would cost
-- half as much again.
--
-- takes.lua would give the same result. Only usual states are decided here:
-- there is no key, or its units drain. At the first other state, the general case
-- goes on with that take, or with its call. Until then the script has written nothing
-- of that call. Other states do not parse, lie ahead of the clock, hold more than the
-- cap, or have drained for more parts than doubles hold.
--
-- A call is charged if none of its takes is denied. Its first turns judge all takes
-- except the first, and keep their states. The next turn judges the first take and
-- charges it. The last turns charge the others. A lone take is a call of one take,
-- so it has only the turn that does both. A run of lone takes shares one loop.
--
-- MGET reports a key of another type as missing. So the first take of a call writes
-- a missing key with NX. If that fails, the general case asks for the error. GET
-- tells of the call's other missing keys, and of a missing key that is not charged. If
-- Redis has no memory left, it refuses a first write with NX also where the key has
-- another type. Then the script fails, where takes.lua would fail the call alone.
--
-- token_bucket.lua derives how units drain. state.lua has the forms of a state, its
-- TTL, and when INCRBY may write it. prelude.lua has the arguments and the reply.
--
-- Example: 100 per minute is r = 1 per w = 600 000. The key holds t0 = now -
-- 500 000 and n0 = 7 in the short form. No unit has drained, so t = t0, and a take
-- makes n = 8. Then full_at is now - 500 000 + 8 * 600 000, in 4.3 s. With n0 the
-- bucket was full in 3.7 s. If no span ends between the two, INCRBY adds n - n0 = 1.
-- Otherwise PSETEX stores the state until the end of the span of full_at, and longer.

-- The takes that are decided here, and their answers; where the run of the next take
-- begins in ARGV[2], and how many keys or calls of it are decided; and the texts of
-- all keys, false if the general case has to read them. The judged states of a call
-- and the answers replace the texts, which spares tables.
local decided, first_answers, run, done, values = 0, '', 1, 0, false

if not ARGV[3] then
  local KEYS, tonumber, limits, takes, last = KEYS, tonumber, ARGV[1], ARGV[2], #ARGV[2]
  local alike, times, index, units, pos, count -- of the run; count is false or the takes of a call
  local known, r, w, burst, cap, spare -- the number of the limit that was read last, and the limit
  while run <= last do
    if done == 0 then
      alike, times, index, units, pos = unpack('<HHHd', takes, run)
      if times > 1 then
        break
      end
      count = times == 0 and index
    end
    values = values or KEYS[2] and call('MGET', spread(KEYS))
    local before, first, final, denied = decided, decided + 1, decided + alike, false
    if count then
      first, final = 1, 2 * count - 1
    end
    for turn = first, final do
      local i, size, t0, n0, n, t, f, v = turn, nil, nil, nil, 0, time, 0, 2
      if not count then
        denied = false
      else
        local place = turn % count -- from 0
        i = before + place + 1
        if turn <= count then
          index, units = unpack('<Hd', takes, pos + 10 * place)
        end
      end
      local key = KEYS[i]
      if count and turn > count then
        size, t0, n0, n, t, f, v, units, known, r, w, burst, cap, spare = spread(values[i], 1, 14)
      else
        if index ~= known then
          r, w, burst, cap = unpack('<dddd', limits, 43 * index - 40) -- a bucket has 43 bytes
          known, spare = index, burst * w / r
          spare = spare > 10000000 and 10000000 or spare + -spare % 1 -- rounded up
        end
        local text = values and values[i]
        if not text and (not values or count and turn < count) then
          text = pcall('GET', key)
        end
        if text then
          size = #text -- 0 of an error, which is a table
          local f0 = 0
          if size == 19 or size == 20 and byte(text) == 45 then
            local x, y, z = byte(text, -3, -1)
            if x >= 48 and x <= 57 and y >= 48 and y <= 57 and z >= 48 and z <= 57 then
              t0, n0 = tonumber(sub(text, -19, -4)), x * 100 + y * 10 + z - 5328
            end
          elseif size > 0 and size <= 40 then
            t0, n0, f0 = string.match(text, '^(%d+):(%d+):(%d+)$')
            t0, n0, f0 = tonumber(t0), tonumber(n0), tonumber(f0)
          end
          local parts = t0 and (time - t0) * r
          if not (t0 and t0 >= 1e15 and t0 < time and n0 <= cap and f0 < r and parts < 9007199254740992) then
            break
          end
          parts, v = parts - f0, 0
          local rest = parts % w
          n = n0 - (parts - rest) / w
          if n > 0 then
            f = -rest % r
            t = time - (rest + f) / r
          else
            n = 0
          end
        end
        if burst - n >= units then
          v = v + 1
        else
          denied = true
        end
      end

      if count and turn < count then
        values[i] = { size, t0, n0, n, t, f, v, units, known, r, w, burst, cap, spare }
      else
        if units > 0 and not denied then
          n, v = n + units, v + 4
          local full_at, added = t + (n * w + f) / r, false
          if size == 19 and n <= 999 and f == 0 then
            local full0 = t0 + n0 * w / r
            added = full_at < full0 - full0 % spare + spare
              and type(pcall('INCRBY', key, format('%d', (t - t0) * 1000 + n - n0))) == 'number'
          end
          if not added then
            local left, short = full_at - time, '-%d%03d'
            if size then
              left, short = left - full_at % spare + spare + time % spare, '%d%03d'
            end
            left = left / 1000 + 2
            if left > 3153600000000 then
              left = 3153600000000
            end
            local state
            if n <= 999 and f == 0 and t >= 1e15 then
              state = format(short, t, n)
            else
              state = format('%d:%d:%d', t, n, f)
            end
            if size or not values then
              call('PSETEX', key, format('%d', left), state)
            elseif not call('SET', key, state, 'PX', format('%d', left), 'NX') then
              break
            end
          end
        elseif values and not size and (not count or turn == count) and pcall('GET', key) then
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
    end

    if decided < before + (count or alike) then
      done = done + decided - before
      break
    end
    done = done + (count and 1 or alike)
    if done == alike then
      run, done = pos + 10 * (count or 0), 0
    end
  end
  if decided > 0 then
    first_answers = table.concat(values, '', 1, decided)
    if run > last then
      return pack('<d', time) .. first_answers
    end
  end
  if count then -- as one expression with not and and, the Lua of miniredis gets it wrong
    values = false
  end
end
