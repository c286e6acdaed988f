-- Token bucket. Twin: token_bucket.go. Step: see steps.lua.
--
-- State: at the instant t + f/r exactly n units were in use, with f < r. Since
-- then they drain, r units in w µs.
--
-- Time is counted in parts of 1/r µs: a unit takes w parts to drain. From the
-- state's instant until now there are
--
--   parts = (now - t) * r - f,  and  floor(parts / w) units have drained.
--
-- While (now - t) * r is below 2^53, each operation on these integers is exact,
-- and so is floor(parts / w). With rest = parts % w, the last unit drained rest
-- parts before now. As t' + f'/r that instant has f' = -rest % r and t' = now -
-- (rest + f') / r.
--
-- Example: 90 per minute is r = 3 per w = 2 000 000. At t = 0, f = 0 five units
-- are in use. At now = 1 000 000, parts = 3 000 000: one unit has drained, and
-- rest = 1 000 000. So f' = -1 000 000 % 3 = 2 and t' = 1 000 000 - 1 000 002 /
-- 3 = 666 666, with n = 4.
--
-- Above 2^53 the quotient of doubles is off by one at most: it is no larger
-- than n <= 2^30, and its relative error is below 2^-50. The instant at which k
-- units have drained corrects it, because that has only exact terms:
--
--   t + k * a + (f + k * b) / r,  because w = a * r + b.
--
-- f + k * b < r * (cap + 1), which limits keep below 2^53.
--
-- undo takes units off, except units that had time to refill since the take.
--
-- While the state is unchanged since the take, undo puts the state before the
-- take back as it was, undrained. So the rest of the receipt can be returned as
-- exactly later.
--
-- Once others have used the bucket, undo must not credit units twice. Without
-- the take, the level would have been lower by its units at first. The
-- difference shrinks only while that other level is empty, so by no more than
-- the units that drain in that time. So n - units are in use at the instant t +
-- f/r + (now - taken). That may lie ahead of now, where no state can be. So
-- undo goes back from there by k units, the least number, at most units, for
-- which
--
--   taken + (k * w) / r >= t + f/r,
--
-- and n - units + k are in use then. The k of doubles is off by one at most,
-- and the exact instant taken + k * a + (k * b) / r corrects it.
-- token_bucket.go has an example.

-- drained returns how many units, at most limit, had time to drain between
-- t + f/r and an instant (> t).
local function drained(t, f, l, limit, by)
  local r, w, a, b, floor = l.r, l.w, l.a, l.b, math.floor
  local parts = (by - t) * r
  if parts < EXACT then
    local k = floor((parts - f) / w)
    return k < limit and k or limit
  end
  local k = floor((by - t - f / r) * r / w)
  if k > limit then
    k = limit
  end
  parts = f + k * b
  local whole = floor(parts / r)
  local at = t + k * a + whole
  if at > by or (at == by and parts > whole * r) then
    return k - 1
  end
  if k < limit then
    parts = f + (k + 1) * b
    whole = floor(parts / r)
    at = t + (k + 1) * a + whole
    if at < by or (at == by and parts == whole * r) then
      return k + 1
    end
  end
  return k
end

-- kept_past returns the past of a bucket that is empty: its era.
local function kept_past(past)
  return past and past_of(0, past.era, 0, 0, 0)
end

-- bucket_at is the step's at.
local function bucket_at(n, t, f, past, l)
  local r, w = l.r, l.w
  if f >= r then
    f = r - 1
  end
  if n == 0 then
    return 0, now, 0, kept_past(past), false
  end
  if n > l.cap or (past and past.r > 0 and (past.r ~= r or past.w ~= w)) then
    -- This ends the receipts of units that are forgotten, and of the other rate.
    n, past = n < l.cap and n or l.cap, past_of(past and past.last or 0, next_era(past, now), 0, 0, 0)
  end
  if past and past.last > t and drained(t, f, l, 1, past.last) > 0 then -- the rate was raised
    t, f = past.last, 0
  end
  if t > now + TOLERANCE then
    return n, now, 0, past_of(0, next_era(past, now), 0, 0, 0), true
  end
  if t >= now then
    return n, t, f, past, false
  end
  local parts = (now - t) * r
  if parts < EXACT then -- before f is subtracted: above, the product is rounded
    parts = parts - f
    local rest = parts % w
    n = n - (parts - rest) / w
    if n <= 0 then
      return 0, now, 0, kept_past(past), false
    end
    f = -rest % r
    return n, now - (rest + f) / r, f, past, false
  end
  local k = drained(t, f, l, n, now)
  if k == n then
    return 0, now, 0, kept_past(past), false
  end
  f = f + k * l.b
  local carry = f % r
  return n - k, t + k * l.a + (f - carry) / r, carry, past, false
end

-- bucket_charge is the step's charge. It notes its instant if it comes over 10
-- ms after t and leaves over a 16th of the burst in use (see token_bucket.go),
-- and always if the state is mixed. It notes the rate if the limit has a further
-- double: then a charge may be returned.
local function bucket_charge(n, t, f, past, l, _, units)
  n = n + units
  if not past then
    local last = n * 16 > l.burst and now - t > 10000 and now or 0
    if l.further then
      return n, t, f, past_of(last, 0, l.w, l.r, l.w)
    end
    return n, t, f, last > 0 and past_of(last, 0, 0, 0, 0) or nil
  end
  local last, shift, r, w = past.last, past.shift, past.r, past.w
  if shift < w or (n * 16 > l.burst and now - t > 10000) then
    last = last > now and last or now
  elseif last <= t then
    last = 0
  end
  if l.further and r == 0 then
    shift, r, w = l.w, l.r, l.w
  end
  return n, t, f, past_of(last, past.era, shift, r, w)
end

-- bucket_full_at is the step's full_at. It may be off by less than a µs; the
-- TTL has more room than that.
local function bucket_full_at(n, t, f, _, l)
  return t + (n * l.w + f) / l.r
end

if makers then
  makers.tb = function()
    local step = {
      at = bucket_at, charge = bucket_charge, full_at = bucket_full_at, spare = true,
      grant = false, backfill = false, credit = false, undo = false,
    }
    if not settles then
      return step
    end

    local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min

    -- restore is undo if no one else has used the bucket.
    local function restore(l, units, take)
      local n0 = max(0, take.stored_n - units)
      local n, t, f, past, repaired = bucket_at(n0, take.stored_t, take.stored_f, take.stored_past, l)
      if repaired or n == 0 then
        return n, t, f, past
      end
      return n0, take.stored_t, take.stored_f, take.stored_past
    end

    local function shift_of(past)
      return past and past.shift or 0
    end

    -- shifted moves a state by some µs, off the instants at which it drained
    -- until now, and brings it to now. No state precedes the epoch.
    local function shifted(n, t, f, past, l, by)
      local era, shift = era_of(past), (shift_of(past) + by) % l.w
      n, t, f = bucket_at(n, t + by, f, nil, l)
      if n > 0 then
        return n, max(t, 0), f, past_of(now, era, shift, l.r, l.w)
      end
      return n, max(t, 0), f, past_of(0, era, 0, 0, 0)
    end

    -- phase returns the place of t + f/r between two instants that are a unit's
    -- time apart, in parts of 1/r µs: (t * r + f) % w. It multiplies by r in
    -- digits of 7 bits, because w is below 2^45.
    local function phase(t, f, l)
      local r, w, product, digit = l.r, l.w, 0, 268435456 -- 2^28
      t = t % w
      while digit >= 1 do
        product = (product * 128 + t * (floor(r / digit) % 128)) % w
        digit = digit / 128
      end
      return (product + f) % w
    end

    -- without is undo while some of the units have not refilled from taken until by.
    local function without(n, t, f, past, l, units, taken, by)
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
      n, t, f = n - units + k, t - (kt - taken), f - kf
      if f < 0 then
        f, t = f + r, t - 1
      end
      if n <= 0 then
        return 0, now, 0, kept_past(past)
      end
      return shifted(n, t, f, past, l, by - taken)
    end

    local function backfill(n, t, f, past, l, _, units, take)
      -- Only units that have not drained since then are charged. The fraction
      -- of the unit that drains next is kept.
      local left, since = bucket_at(units, min(take.at, now), 0, nil, l)
      units = min(left, max(0, l.burst - n))
      if units > 0 then
        return shifted(n + units, t, f, past, l, since - now)
      end
      return n, t, f, past
    end

    local function grant(n, t, f, past, l, _, units)
      if n <= units then
        return 0, t, 0, kept_past(past)
      end
      return n - units, t, f, past_of(past and past.last or 0, era_of(past), shift_of(past) % l.w, l.r, l.w)
    end

    -- credit is undo after others have used the bucket.
    local function credit(n, t, f, past, l, key, units, take)
      local by = max(now, t) -- a late caller is judged at the stored instant
      if by > take.at and drained(take.at, 0, l, units, by) == units then
        return n, t, f, past
      end
      if
        take.r ~= l.r or take.w ~= l.w
        or phase(t - shift_of(past), f, l) ~= phase(take.t - take.shift, take.f, l)
      then
        return n, t, f, past -- the take is not in this state
      end
      if by <= take.at then
        return grant(n, t, f, past, l, key, units)
      end
      return without(n, t, f, past, l, units, take.at, by)
    end

    step.grant, step.backfill, step.credit = grant, backfill, credit

    function step.undo(n, t, f, past, l, key, units, take)
      if unchanged(take) then
        return restore(l, units, take)
      end
      return step.credit(n, t, f, past, l, key, units, take)
    end

    return step
  end
end
