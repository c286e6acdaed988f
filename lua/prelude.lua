-- The arguments and the result of the script, its clock and its limits.
--
-- One call decides any number of checks as one atomic step.
--
-- KEYS    the distinct keys of the call, all in one Redis Cluster slot
-- ARGV[1] the clock in µs since the Unix epoch; 0: the server's TIME
-- ARGV[2] the distinct limits, packed. Per limit: the tag of its algorithm c2;
--         the doubles r, w, a, b, burst, cap, window (µs); then a count B of
--         further doubles, and these. Only the algorithm knows their meaning. A
--         bucket has one if its charges may be returned.
-- ARGV[3] lone takes from buckets, packed: the number of their keys H, which
--         come first in KEYS; then per run of keys that are used alike:
--         keys H, takes of each key H, limit H, cost I4
-- ARGV[4] groups of other checks, packed: either of takes and trials, or of
--         settlements. Per group: its checks H, and the takes
--         that were denied elsewhere H. Per check: op B, key H, limit H, cost I4;
--         for trial-instead, the take to leave out H: its place in the group,
--         0 for one elsewhere that is allowed, 65535 for one that is denied;
--         for return, renew and backfill, the receipt's t d, n I4, f d, at d, era d,
--         shift d, r d, w d;
--         for steps that tell takes apart, the take's id d, and I4 the number
--         of its last unit
-- ARGV[5] the deadline, by the server's TIME in µs; 0: none
--
-- Keys, limits and places are numbered from 1.
--
-- Returns {answers, error...}. The answers are packed: the server's TIME d; the
-- clock d, if it is the caller's; then per lone take, and then per group, a
-- status B. After status 0 come the answers of the checks. Status 1 means that
-- the next of the errors is the group's. A script that runs after its deadline
-- does nothing, and returns the server's TIME alone.
--
-- An answer is v B, n I4, t d, f d. v is the sum of 1 if the check is allowed,
-- 2 if no state was stored, 4 if the check was charged, 8 if two instants
-- follow: when the cost fits d, and when one unit fits d; and 16 if the era d
-- and the shift d follow.
--
-- r units come back every w µs in lowest terms, so one unit every a + b/r µs.
-- Times are µs, quantities are units, and every number is an integer below
-- 2^53, which doubles hold exactly. Never tostring() or .. a number: they keep
-- 14 digits.

local call, pcall = redis.call, redis.pcall
local format, match, sub, byte = string.format, string.match, string.sub, string.byte
local unpack, pack, spread = struct.unpack, struct.pack, unpack

-- A stored instant may lie ahead of the clock by this much. Beyond it, the
-- clock must have stepped back.
local TOLERANCE = 100000

local EXACT = 9007199254740992 -- 2^53

local time = call('TIME') -- once: before Redis 7.2 it moves on within a script
time = time[1] * 1000000 + time[2]

if ARGV[5] ~= '0' and time > tonumber(ARGV[5]) then
  return { pack('<d', time) }
end

local now, callers_clock = time, false

if ARGV[1] ~= '0' then
  now, callers_clock = tonumber(ARGV[1]), true
end

local limits = {}
do
  local packed = ARGV[2]
  local pos, size, count = 1, #packed, 0
  while pos <= size do
    local tag, r, w, a, b, burst, cap, window, more
    tag, r, w, a, b, burst, cap, window, more, pos = unpack('<c2dddddddB', packed, pos)
    local l = {
      tag = tag, r = r, w = w, a = a, b = b, burst = burst, cap = cap, window = window, further = false, step = false,
    }
    if more > 0 then
      l.further = {}
      for i = 1, more do
        l.further[i], pos = unpack('<d', packed, pos)
      end
    end
    count = count + 1
    limits[count] = l
  end
end

-- By the tag of an algorithm: the function that makes its step. Before its file
-- is run, the value is true if a limit has the tag. A file need not make a
-- function that no limit uses, unless other files build on it, because making a
-- function takes time. So a call of only lone takes has no makers, and only a
-- call of settlements has their functions.
local makers, settles
if ARGV[4] ~= '' then
  makers = {}
  for i = 1, #limits do
    makers[limits[i].tag] = true
  end
  settles = byte(ARGV[4], 5) >= 3 -- the first op
end
