-- Leaky bucket. Twin: leaky_bucket.go. Step: see steps.lua.
--
-- State and step are the token bucket's. Only the newest take can be undone:
-- takes behind an older one have been promised their delays.

makers.lb = makers.lb and function()
  local step = makers.tb()

  step.credit = settles and function(n, t, f, past)
    return n, t, f, past
  end

  return step
end
