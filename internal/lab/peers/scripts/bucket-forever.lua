-- A token bucket in a hash that is refilled in whole tokens, and that no expiry removes.
local capacity, window, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local tokens = tonumber(redis.call('HGET', KEYS[1], 'tokens')) or capacity
local refilled = tonumber(redis.call('HGET', KEYS[1], 'refilled')) or now
local fresh = math.floor((now - refilled) * capacity / window)
if fresh > 0 then
	tokens, refilled = math.min(capacity, tokens + fresh), now
end
if tokens < 1 then
	return 0
end
redis.call('HSET', KEYS[1], 'tokens', tokens - 1, 'refilled', tostring(refilled))
return 1
