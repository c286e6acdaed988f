-- A token bucket in a hash, by the caller's clock.
local capacity, window, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local state = redis.call('HMGET', KEYS[1], 'tokens', 'updated')
local tokens = tonumber(state[1]) or capacity
local updated = tonumber(state[2]) or now
tokens = math.min(capacity, tokens + math.max(0, now - updated) * capacity / window)
local allowed = 0
if tokens >= 1 then
	tokens, allowed = tokens - 1, 1
end
redis.call('HSET', KEYS[1], 'tokens', tostring(tokens), 'updated', ARGV[3])
redis.call('PEXPIRE', KEYS[1], 2 * window)
return allowed
