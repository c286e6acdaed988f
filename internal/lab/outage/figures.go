package main

import (
	"net/http"
	"slices"
	"time"
)

// figures are what a client has noticed in a part of a run.
type figures struct {
	sent, admitted, denied, errors int
	median, p99                    time.Duration
	seconds                        float64
}

// in returns the figures of the requests that were sent in a part.
func in(answers []answer, p part) figures {
	f := figures{seconds: (p.to - p.from).Seconds()}
	var took []time.Duration
	for _, a := range answers {
		if a.at < p.from || a.at >= p.to {
			continue
		}
		f.sent++
		took = append(took, a.took)
		switch a.status {
		case http.StatusOK:
			f.admitted++
		case http.StatusTooManyRequests:
			f.denied++
		default:
			f.errors++
		}
	}
	slices.Sort(took)
	if n := len(took); n > 0 {
		f.median, f.p99 = took[n/2], took[n-1-n/100]
	}
	return f
}

// perSecondOf returns the figures of each second.
func perSecondOf(answers []answer, end time.Duration) []figures {
	var all []figures
	for from := time.Duration(0); from < end; from += time.Second {
		all = append(all, in(answers, part{from: from, to: from + time.Second}))
	}
	return all
}
