-- Leaky bucket. The token bucket's state and step; only the newest take can be
-- undone, since those behind it have been promised their delays.
-- Twin: algorithms/leaky_bucket.go.

local function leaky_bucket()
  local step = token_bucket()
  function step.undo(n0, t0, f0, n, t, f, units, rt, rn, rf, l)
    if n0 == rn and t0 == rt and f0 == rf then
      return step.restore(n0, t0, f0, units, l)
    end
    return n, t, f
  end
  return step
end
