-- A fixed window: the first request of a window sets the key's expiry.
local count = redis.call('INCR', KEYS[1])
if count == 1 then
	redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return count <= tonumber(ARGV[1]) and 1 or 0
