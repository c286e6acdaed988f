package main

// A shape sends requests for some windows. It begins with a window of the clock.
type shape struct {
	name, describes string
	send            func(r *run, windows int64)
}

var shapes = []shape{
	{"steady", "one request after the other at 1.5 times the limit", steady},
	{"Poisson", "random instants, 1.5 times the limit on average", poisson},
	{"on-off", "random instants at four times the limit for half a minute on average, then silence for as long", onOff},
	{"edge bursts", "the whole limit in the last second of a minute of the clock, and again in the first second of the next", edges},
	{"daily", "random instants that rise from none to twice the limit and fall again, over 20 minutes", daily},
	{"adversarial", "a client that has rested begins just before a minute of the clock ends, and asks as early as it can for a minute", adversarial},
}

func steady(r *run, windows int64) {
	n := r.limit.Requests() * windows * 3 / 2
	for i := range n {
		r.ask(begin + i*windows*minute/n)
	}
}

func poisson(r *run, windows int64) {
	r.atRandom(windows, func(int64) float64 { return 1.5 })
}

func onOff(r *run, windows int64) {
	on, until := false, begin
	r.atRandom(windows, func(now int64) float64 {
		for now >= until {
			on, until = !on, until+int64(r.random.ExpFloat64()*float64(minute)/2)
		}
		if on {
			return 4
		}
		return 0
	})
}

func daily(r *run, windows int64) {
	r.atRandom(windows, func(now int64) float64 {
		part := float64((now-begin)%(20*minute)) / float64(20*minute)
		return 4 * min(part, 1-part)
	})
}

// atRandom sends requests at random instants. rate is how many times the limit, at most 4.
func (r *run) atRandom(windows int64, rate func(now int64) float64) {
	mean := float64(minute) / float64(4*r.limit.Requests())
	for now := begin; ; {
		now += int64(r.random.ExpFloat64() * mean)
		if now >= begin+windows*minute {
			return
		}
		if r.random.Float64()*4 < rate(now) {
			r.ask(now)
		}
	}
}

func edges(r *run, windows int64) {
	const second = minute / 60
	n := r.limit.Requests()
	for w := int64(0); w < windows; w += 3 {
		edge := begin + (w+1)*minute
		for i := range 2 * n {
			r.ask(edge - second + i*second/n)
		}
	}
}

func adversarial(r *run, windows int64) {
	for w := int64(0); w < windows; w += 4 {
		first := begin + (w+1)*minute - 1
		for now := first; now < first+minute; {
			now += r.ask(now)
		}
	}
}
