-- Leaky bucket. The token bucket's state and step; only the newest take can be
-- undone, since those behind it have been promised their delays.
-- Twin: algorithms/leaky_bucket.go.

rows[2] = {
  load = load_string,
  at = bucket_at,
  used = bucket_used,
  charge = charge_units,
  force = force_units,
  grant = grant_units,
  undo = function(n0, t0, f0, n, t, f, units, rt, rn, rf, l)
    if n0 == rn and t0 == rt and f0 == rf then
      return bucket_restore(n0, t0, f0, units, l)
    end
    return n, t, f
  end,
  full_at = bucket_full_at,
}
