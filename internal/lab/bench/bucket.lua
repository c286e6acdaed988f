-- A minimal token bucket for one key: GCRA in integer µs.
-- KEYS[1] the key; ARGV: µs per unit, µs of the burst, cost.
-- State: the instant at which the bucket is full again.
-- Returns {1 if allowed, µs until it is full again}.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local full = tonumber(redis.call('GET', KEYS[1]) or now)
if full < now then
  full = now
end
local after = full + ARGV[1] * ARGV[3]
if after - now > ARGV[2] + 0 then
  return {0, full - now}
end
redis.call('SET', KEYS[1], string.format('%.0f', after), 'PX', math.ceil((after - now) / 1000))
return {1, after - now}
