-- Token bucket. Twin: token_bucket.go. Step: see state.lua.
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
-- units have drained corrects it, because that has only exact terms. With w =
-- a * r + b it is
--
--   t + k * a + (f + k * b) / r.
--
-- f + k * b < r * (cap + 1), which limits keep below 2^53.

if steps.tb or steps.lb then
  steps.tb = {
    spare = true,
    at = function(n, t, f, l)
      local r, w = l.r, l.w
      if n > l.cap then
        n = l.cap
      end
      if f >= r then
        f = r - 1
      end
      if n == 0 then
        return 0, now, 0, false
      elseif t > now + 100000 then
        return n, now, 0, true
      elseif t >= now then
        return n, t, f, false
      end
      local parts = (now - t) * r
      if parts < 9007199254740992 then -- before f is subtracted: a larger product is rounded
        parts = parts - f
        local rest = parts % w
        n = n - (parts - rest) / w
        if n <= 0 then
          return 0, now, 0, false
        end
        f = -rest % r
        return n, now - (rest + f) / r, f, false
      end

      local b = w % r
      local a = (w - b) / r
      local function drained_at(k) -- the whole µs, and the parts of the next one
        local rest = (f + k * b) % r
        return t + k * a + (f + k * b - rest) / r, rest
      end
      local function drained(k)
        local whole, rest = drained_at(k)
        return whole < now or (whole == now and rest == 0)
      end
      local k = math.min(math.max(math.floor((now - t - f / r) * r / w), 0), n)
      if k > 0 and not drained(k) then
        k = k - 1
      elseif k < n and drained(k + 1) then
        k = k + 1
      end
      if k == n then
        return 0, now, 0, false
      end
      t, f = drained_at(k)
      return n - k, t, f, false
    end,
    -- It may be off by less than a µs; the TTL has more room than that.
    full_at = function(n, t, f, l)
      return t + (n * l.w + f) / l.r
    end,
  }
end
