-- The toy. State and step are the fixed window's, half a window later.
-- Twin: toy.go.

makers.ty = function()
  local function index(instant, l)
    return floor((instant + floor(l.window / 2)) / l.window)
  end

  return makers.fw(function(from, to, l)
    return index(to, l) - index(from, l)
  end, function(at, k, l)
    return (index(at, l) + k) * l.window - floor(l.window / 2)
  end)
end
