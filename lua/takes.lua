-- Lone takes from buckets, each from another caller. Most checks are such
-- takes. So they are decided with as few commands as possible, before the
-- functions are made that only other checks need. Twin: token_bucket.go.
--
-- Arguments: ARGV[3]. The script returns here if there is nothing else.
--
-- All takes of one key in a call have the same limit and the same cost. So the
-- state is read and brought to now once, each take adds its units if they fit,
-- and the state is written once. The v of an answer contains 2 only until the
-- first take is charged: after it, a state is stored.
--
-- Example: a burst of 4 with n = 2 now, and three takes of 1. The answers have
-- n = 3 and n = 4, charged, and n = 4, denied. One write stores n = 4.

local replies, errors, replied = { pack('<d', time) }, { '' }, 1

if callers_clock then
  replies[1] = pack('<dd', time, now)
end

if ARGV[3] ~= '' then
  local takes = ARGV[3]
  local count, pos = unpack('<H', takes, 1)
  local values = call('MGET', spread(KEYS, 1, count))
  local i, size = 0, #takes
  while pos <= size do
    local keys, times, index, units
    keys, times, index, units, pos = unpack('<HHHI4', takes, pos)
    local l = limits[index]
    local burst = l.burst
    for _ = 1, keys do
      i = i + 1
      local key, text, failure = KEYS[i], values[i], nil
      if not text then
        text = pcall('GET', key) -- MGET reports a key of another type as missing
        if text then
          failure = text.err
        end
      end
      if failure then -- each take has its own answer, and so its own error
        for _ = 1, times do
          replied = replied + 1
          replies[replied], errors[#errors + 1] = '\1', failure
        end
      else
        -- t0 and n0 remain nil unless a state was read: then save may add to it.
        local missing, write, t, n, f, past, t0, n0 = 2, false
        if text then
          t, n, f, past = decode(text)
          t0, n0 = t, n
        end
        if t and (n > 0 or f > 0 or past) then
          missing = 0
          n, t, f, past, write = bucket_at(n, t, f, past, l)
        else
          n, t, f, past = 0, now, 0, nil
        end
        local charged
        for _ = 1, times do
          local verdict = missing
          if n + units <= burst then
            verdict = verdict + 1
            if units > 0 then
              n, verdict, missing, write, charged = n + units, verdict + 4, 0, true, true
            end
          end
          replied = replied + 1
          if past and (past.era > 0 or past.r > 0) then
            replies[replied] = pack('<BBI4dddd', 0, verdict + 16, n, t, f, past.era, past.shift)
          else
            replies[replied] = pack('<BBI4dd', 0, verdict, n, t, f)
          end
        end
        if charged then
          n, t, f, past = bucket_charge(n, t, f, past, l, key, 0)
        end
        if write then
          save(key, text, t0, n0, n, t, f, past, bucket_full_at(n, t, f, past, l), l)
        end
      end
    end
  end
end

if ARGV[4] == '' then
  errors[1] = table.concat(replies)
  return errors
end
