-- Sliding window counter. Twin: sliding_window_counter.go. Step: see state.lua.
--
-- State: n units in the window of t, the last write, and f units in the window
-- before. Windows are aligned to the epoch. Of a window w that ends now, m µs
-- lie in the previous window, which counts in that proportion: ceil(f * m / w).
--
-- The product f * m may have 75 bits, and doubles have 53. Above 2^53 the
-- quotient is computed in two steps:
--
--   q = floor(f * (m / w)) is off by one at most: f <= 2^30 and m <= w, and both
--   operations have a relative error of 2^-53.
--
--   d = f * m - q * w is then between -w and 2 * w, and ceil(f * m / w) is
--   q + ceil(d / w). To form d exactly, m and w are split: m = mh * 2^23 + ml.
--   As w < 2^45, the high parts are below 2^22. f * ml and q * wl are below 2^53,
--   f * mh and q * wh below 2^52. Their differences are exact, and so is the
--   product with 2^23. The sum of both is d, which is small, and so exact.
--
-- Example: a day, w = 86 400 000 000, with f = 1 000 000 and m = 43 200 000
-- 001. The product is 4.3e16, above 2^53 = 9.0e15. q = 500 000, d = 1 000 000 *
-- 1 = 1 000 000, and the weight is 500 000 + ceil(1 000 000 / w) = 500 001.

if steps.sc then
  local SPLIT = 8388608 -- 2^23

  -- weight returns ceil(f * m / w).
  local function weight(f, m, w)
    local product = f * m
    if product < 9007199254740992 then
      return ceil(product / w)
    end
    local q = floor(f * (m / w))
    local mh, wh = floor(m / SPLIT), floor(w / SPLIT)
    local d = (f * mh - q * wh) * SPLIT + (f * (m - mh * SPLIT) - q * (w - wh * SPLIT))
    return q + ceil(d / w)
  end

  steps.sc = {
    at = function(n, t, f, l)
      n, f = min(n, l.cap), min(f, l.cap)
      if n == 0 and f == 0 then
        return 0, now, 0, false
      end
      local w, repair = l.window, t > now + 100000
      if repair then
        t = now
      end
      local eff = max(t, now)
      local rolled = floor(eff / w) - floor(t / w)
      if rolled == 1 then
        -- Not in the other order: the Lua of miniredis assigns one after the other.
        f, n = n, 0
      elseif rolled > 1 then
        n, f = 0, 0
      end
      return n, eff, f, repair
    end,
    used = function(n, t, f, l)
      return n + weight(f, l.window - t % l.window, l.window)
    end,
    grant = function(n, t, f, _, _, units)
      local credit = min(n, units)
      return n - credit, t, max(0, f - (units - credit))
    end,
    undo = function(n, t, f, l, _, units, take)
      local rolled = floor(t / l.window) - floor(take.t / l.window)
      if rolled == 0 then
        n = max(0, n - units)
      elseif rolled == 1 then
        f = max(0, f - units)
      end
      return n, t, f
    end,
    -- The present window still counts while it is the previous one.
    full_at = function(n, t, _, l)
      return (floor(t / l.window) + (n > 0 and 2 or 1)) * l.window
    end,
  }
end
