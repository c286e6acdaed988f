-- A sliding counter: this window's requests, and the part of the last window's that a sliding window would still see.
local now, window = tonumber(ARGV[3]), tonumber(ARGV[2])
local index = math.floor(now / window)
local current = KEYS[1] .. ':' .. index
local previous = KEYS[1] .. ':' .. (index - 1)
local part = 1 - (now % window) / window
local used = tonumber(redis.call('GET', current) or 0) + part * tonumber(redis.call('GET', previous) or 0)
if used >= tonumber(ARGV[1]) then
	return 0
end
redis.call('INCR', current)
redis.call('PEXPIRE', current, 2 * window)
return 1
