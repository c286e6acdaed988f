-- Leaky bucket. Twin: leaky_bucket.go. Step: see state.lua.
--
-- State and step are the token bucket's. Only the newest take can be undone, as
-- long as its state is stored: takes behind an older one have been promised
-- their delays.

if steps.lb then
  steps.lb = {
    spare = true,
    at = steps.tb.at,
    full_at = steps.tb.full_at,
    undo = settles and function(n, t, f, _, _, units, take)
      if take.stored_n == take.n and take.stored_t == take.t and take.stored_f == take.f then
        return less(take.n, take.t, take.f, nil, nil, units)
      end
      return n, t, f
    end,
  }
end
