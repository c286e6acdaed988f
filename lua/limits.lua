-- The limits of the call, and whether its groups are settlements.

local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min -- lone.lua does without

-- By the tag of an algorithm: true if a limit has the tag. Then the algorithm's
-- file puts its step in that place. The files of other algorithms make nothing.
-- mixed says that a limit is not a token bucket.
local steps = { tb = false }

local limits, distinct, mixed = { false, false }, 0, false
do
  local packed = ARGV[1]
  local pos, size = 1, #packed
  while pos <= size do
    local tag, r, w, burst, cap, window, more
    tag, r, w, burst, cap, window, more, pos = unpack('<c2dddddB', packed, pos)
    local l = { tag = tag, r = r, w = w, burst = burst, cap = cap, window = window, step = false, spare = 1 }
    if more > 0 then
      l.further = {}
      for i = 1, more do
        l.further[i], pos = unpack('<d', packed, pos)
      end
    end
    distinct = distinct + 1
    limits[distinct], steps[tag], mixed = l, true, mixed or tag ~= 'tb'
  end
end

-- The groups, if there are any, and whether they are settlements.
local groups = ARGV[4]
local settles = groups and byte(groups, 7) -- the first op
settles = settles and settles >= 5 and settles <= 10
