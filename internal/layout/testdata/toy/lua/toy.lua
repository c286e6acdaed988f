-- The toy. State and step are the fixed window's, half a window later.
-- Twin: toy.go.

if steps.ty then
  local function index(instant, l)
    return floor((instant + floor(l.window / 2)) / l.window)
  end

  steps.ty = windows(function(from, to, l)
    return index(to, l) - index(from, l)
  end, function(at, k, l)
    return (index(at, l) + k) * l.window - floor(l.window / 2)
  end)
end
