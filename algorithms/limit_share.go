package algorithms

// A portion is the part of every limit that this process may admit alone.
type portion struct{ num, den int64 }

// of returns the part of a limit: the rate exactly, however small, and the
// burst rounded up. A cost above that burst, but not above the whole one, is
// admitted when nothing is in use, into debt: what is admitted seldom as a
// whole stays possible, and its rate right.
//
// Windows become buckets of the same rate, which carry a debt of any size; the
// parts of all processes together then admit at most the whole burst (and one
// unit for each, by rounding), and the whole rate, in any time. They are counted
// beside the buckets of the same policy and key. Concurrent requests keep their
// algorithm.
func (p portion) of(l Limit) Limit {
	if l.algorithm.Concurrent() && l.valid {
		return p.places(l)
	}
	whole := p.num == p.den && (l.algorithm.Continuous() || l.algorithm.Aligned())
	if whole || l.algorithm == algorithmNobody || !l.valid {
		return l
	}
	part := Limit{algorithm: l.algorithm}
	part.burst = ceilDiv(l.burst*p.num, p.den)
	if !l.algorithm.Continuous() {
		part.algorithm, part.counted = algorithmTokenBucket, l.algorithm
	}
	// In lowest terms, or else as nearly as integers say it that the arithmetic
	// takes, and not faster. One unit in the longest window is the slowest.
	r, w := l.r*p.num, l.w*p.den
	g := gcd(r, w)
	r, w = r/g, w/g
	longest, _ := mulDiv(r, maxWindow, w)
	units := max(1, min(r, maxRequests, longest, (maxExact-1)/(min(part.burst+l.burst, maxUnits)+1)))
	period, exact := mulDiv(units, w, r)
	if !exact {
		period++
	}
	part.requests, part.window = units, min(period, maxWindow)
	part = part.reduced()
	part.most = l.burst
	part.cap = min(part.burst+part.most, maxUnits)
	return part
}

// scope is the algorithm under whose key a limit is counted.
func (l *Limit) scope() Algorithm {
	if l.counted != algorithmNone {
		return l.counted
	}
	return l.algorithm
}

// places returns the part of the requests that may run at a time, rounded down,
// so that all parts are no more than the whole, but at least one. There is no
// rate to keep.
func (p portion) places(l Limit) Limit {
	part := newLimit(l.algorithm, max(1, l.requests*p.num/p.den), l.Window())
	part.most = l.burst
	part.cap = min(part.burst+part.most, maxUnits)
	return part
}
