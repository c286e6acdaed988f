-- A bare token bucket for many keys: the least that an exact batch must do.
-- It is the yardstick for penstock's script.
--
-- KEYS: one check of cost 1 for each key. No key occurs twice.
-- ARGV: r, w, burst. r units drain every w µs, in lowest terms.
-- Returns three numbers per check in one array: 1 if it is allowed, otherwise
-- 0; the units that are in use then; the instant t.
--
-- State: at the instant t + f/r (µs) exactly n units were in use, with f < r.
-- It is one integer of 19 digits, t * 1000 + n, if f is 0 and n is at most 999.
-- Otherwise it is t:n:f.
--
-- Arithmetic: from t + f/r until now there are (now - t) * r - f parts of 1/r
-- µs. A unit drains in w of them. All numbers are integers. Doubles hold them
-- exactly, because a key expires when it is full: so the parts stay below
-- (burst + 1) * w, which must be below 2^53.

local call, format, sub, match, ceil = redis.call, string.format, string.sub, string.match, math.ceil
local r, w, burst = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = call('TIME')
local now = time[1] * 1000000 + time[2]

local states = call('MGET', unpack(KEYS))
local reply = {}
for i = 1, #KEYS do
  local text, n, t, f = states[i], 0, now, 0
  if text then
    if #text == 19 then
      t, n = tonumber(sub(text, 1, 16)), tonumber(sub(text, 17))
    else
      t, n, f = match(text, '^(%d+):(%d+):(%d+)$')
      t, n, f = tonumber(t), tonumber(n), tonumber(f)
    end
    if t < now then
      local parts = (now - t) * r - f
      local rest = parts % w
      n = n - (parts - rest) / w
      if n > 0 then
        f = -rest % r
        t = now - (rest + f) / r
      else
        n, t, f = 0, now, 0
      end
    end
  end

  local allowed = 0
  if n < burst then
    allowed, n = 1, n + 1
    local state
    if f == 0 and n <= 999 then
      state = format('%d%03d', t, n)
    else
      state = format('%d:%d:%d', t, n, f)
    end
    call('SET', KEYS[i], state, 'PX', ceil((t - now + (n * w + f) / r) / 1000) + 1)
  end
  reply[3 * i - 2], reply[3 * i - 1], reply[3 * i] = allowed, n, t
end
return reply
