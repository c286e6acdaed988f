-- Token bucket. State: at the instant t + f/r exactly n units were in use, and
-- since then they drain at r units per w µs. Twin: algorithms/token_bucket.go.

local function token_bucket()
  -- restore puts the state before an untouched take back as it was, not as
  -- it has drained since: so the receipt's rest can be returned as exactly.
  local function restore(n0, t0, f0, units, l)
    n0 = max(0, n0 - units)
    local n, t, f, repaired = bucket_at(n0, t0, f0, l)
    if repaired or n == 0 then
      return n, t, f
    end
    return n0, t0, f0
  end

  -- without takes units off, but for what had time to refill since the take:
  -- n - units are in use as much later than at the state's instant as the take
  -- is old, moved back by as many units as it takes not to lie ahead of now.
  local function without(n, t, f, units, taken, l)
    local r, a, b = l.r, l.a, l.b
    local function drained_at(k)
      local whole = floor(k * b / r)
      return taken + k * a + whole, k * b - whole * r
    end
    local k = min(max(ceil((t - taken + f / r) * r / l.w), 0), units)
    local kt, kf = drained_at(k)
    if k < units and (kt < t or (kt == t and kf < f)) then
      k = k + 1
      kt, kf = drained_at(k)
    elseif k > 0 then
      local lt, lf = drained_at(k - 1)
      if lt > t or (lt == t and lf >= f) then
        k, kt, kf = k - 1, lt, lf
      end
    end
    n, t, f = n - units + k, now - (kt - t), f - kf
    if f < 0 then
      f, t = f + r, t - 1
    end
    if n <= 0 then
      return 0, now, 0
    end
    return n, t, f
  end

  local function undo(n0, t0, f0, n, t, f, units, rt, rn, rf, l, _, taken)
    if n0 == rn and t0 == rt and f0 == rf then
      return restore(n0, t0, f0, units, l)
    end
    if now <= taken then
      return max(0, n - units), t, f
    end
    if drained(taken, 0, units, l) == units then
      return n, t, f
    end
    return without(n, t, f, units, taken, l)
  end

  local function full_at(n, t, f, l)
    return t + n * l.a + ceil((f + n * l.b) / l.r)
  end

  return {
    load = load_string,
    at = bucket_at,
    used = units_used,
    charge = charge_units,
    force = force_units,
    backfill = function(n, t, f, units, l, _, instant)
      local left, since = bucket_at(units, min(instant, now), 0, l)
      units = min(left, max(0, l.burst - n))
      if units > 0 then
        n, t, f = bucket_at(n + units, t - (now - since), f, l)
      end
      return n, t, f
    end,
    grant = grant_units,
    restore = restore,
    undo = undo,
    full_at = full_at,
  }
end
