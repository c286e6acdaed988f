-- The arguments and the result of the script, its clock and its limits.
--
-- One call decides any number of checks as one atomic step.
--
-- KEYS    the distinct keys of the call, all in one Redis Cluster slot
-- ARGV[1] the distinct limits, packed. Per limit: the tag of its algorithm c2;
--         the doubles r, w, burst, cap, window (µs); then a count B of further
--         doubles, and these. Only the algorithm knows their meaning.
-- ARGV[2] takes that are alone on their keys, packed. Their keys come first in
--         KEYS. Per run of keys that are used alike: keys H, lone takes of each
--         key H, limit H, cost d. Per run of calls that are alike: calls H, 0 H,
--         takes of each call H, 0 d; then per take of a call limit H, cost d
-- ARGV[3] the clock in µs since the Unix epoch; 0: the server's TIME. It is missing
--         if that is to be used, all limits are buckets, and ARGV[4] is missing
-- ARGV[4] groups of other checks, packed: either of takes and trials, or of
--         settlements; missing if there are none. At first the number of keys in
--         ARGV[2] H. Per group: its checks H, and the takes that were denied
--         elsewhere H. Per check: op B, key H, limit H, cost d;
--         for trial-instead, the take to leave out, and for the second take of a
--         pair, the first H: its place in the group, 0 for one elsewhere that is
--         allowed, 65535 for one that is denied;
--         for return and renew, the receipt's doubles t, n, f;
--         for steps that tell takes apart, the take's id d, and I4 the number
--         of its last unit
--
-- Keys, limits and places are numbered from 1.
--
-- Returns the answers; or {answers, error...} if there are errors, because Redis
-- takes longer to send a table. The answers are packed doubles: the server's TIME;
-- the clock, if it is the caller's; then the answers of each lone take, and of
-- each group. Instead of them -1 means that the next of the errors is the
-- group's.
--
-- An answer is n * 32 + v and t; then f, unless it is 0. v is the sum of 1 if the
-- check is allowed, 2 if no state was stored, 4 if the check was charged, 8 if
-- two instants follow (when the cost fits, and when one unit fits), and 16 if f
-- is not 0.
--
-- r units come back every w µs in lowest terms. Times are µs, quantities are
-- units, and every number is an integer below 2^53, which doubles hold exactly.
-- Never tostring() or .. a number: they keep 14 digits.
--
-- Scripts are short, and make their functions again each time. So there are few
-- functions, which capture few variables: making one costs more than calling it
-- ten times. Tables begin with places, because growing costs more. Constants stand
-- in the functions that use them: 2^53 is 9007199254740992, and 100 000 µs is the
-- tolerance. A stored instant may lie ahead of the clock by so much. Beyond it,
-- the clock must have stepped back.

local call, pcall = redis.call, redis.pcall
local format, sub, byte = string.format, string.sub, string.byte
local unpack, pack, spread = struct.unpack, struct.pack, unpack

local time = call('TIME') -- once: before Redis 7.2 it moves on within a script
time = time[1] * 1000000 + time[2]

local now, callers_clock = time, false
if ARGV[3] and ARGV[3] ~= '0' then
  now, callers_clock = tonumber(ARGV[3]), true
end
