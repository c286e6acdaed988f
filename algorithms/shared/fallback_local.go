package algorithms

import (
	"context"
	"errors"
	"fmt"
)

// decide decides a call of takes and trials without the primary, for the cause
// that it gave.
func (f *Fallback) decide(ctx context.Context, checks []Check, cause error) error {
	if err := validate(checks); err != nil {
		return err
	}
	for i := range checks {
		if checks[i].Op == Take && checks[i].Fail == FailClosed {
			f.stats.refused.Add(1)
			return unavailable(cause)
		}
	}
	local, places := f.localChecks(checks)
	if len(local) == 0 {
		return nil
	}
	now := f.now()
	f.warm(ctx, local, checks, places, now)
	if err := f.secondary.Allow(ctx, local); err != nil {
		if errors.Is(err, ErrInvalid) || ctx.Err() != nil {
			return err
		}
		for _, i := range places { // even that cannot decide
			checks[i].Decision = Decision{Allowed: true}
		}
		f.stats.passed.Add(uint64(len(places)))
		return nil
	}
	f.stats.local.Add(uint64(len(local)))
	for j, i := range places {
		checks[i].Decision = local[j].Decision
	}
	if !executed(cause) && Allowed(local) {
		for j, i := range places {
			f.owed.record(&checks[i], local[j].Limit, now)
		}
	}
	return nil
}

// executed reports whether a call that ended in err may have been charged, or a
// part of it.
func executed(err error) bool {
	return troubleOf(err).executed || errors.Is(err, errPartly)
}

// localChecks returns the checks for the secondary, each with this process's
// share of its limit, and their places among all. The others pass, Undecided.
func (f *Fallback) localChecks(checks []Check) (local []Check, places []int) {
	local, places = make([]Check, 0, len(checks)), make([]int, 0, len(checks))
	share, passed := f.portion(), false
	for i := range checks {
		c := &checks[i]
		if c.Op == Take {
			passed = c.Fail == FailOpen
		}
		// A candidate of a take that passes has nothing to stand in for.
		if c.Fail != FailLocal || (c.Op == TrialInstead && passed) {
			c.Decision = Decision{Allowed: true}
			f.stats.passed.Add(1)
			continue
		}
		l := *c
		l.Limit = share.of(c.Limit)
		local, places = append(local, l), append(places, i)
	}
	return local, places
}

// warm tells the secondary what the primary was last seen to hold against keys:
// one that is spent there does not begin anew here.
func (f *Fallback) warm(ctx context.Context, local, checks []Check, places []int, now int64) {
	for j, i := range places {
		f.seen.tell(&checks[i], now, func(used int64) {
			f.force(context.WithoutCancel(ctx), &local[j], used, checks[i].Limit.burst)
		})
	}
}

// force has the secondary hold its part of what is used of a whole burst.
func (f *Fallback) force(ctx context.Context, local *Check, used, whole int64) {
	l := local.Limit
	used, exact := mulDiv(used, l.burst, whole)
	if !exact {
		used++
	}
	c := [1]Check{{Policy: local.Policy, Key: local.Key, Limit: l}}
	if f.secondary.Allow(ctx, c[:]) != nil {
		return // the takes will fail as well, and say so
	}
	c[0].Op, c[0].Cost = Force, max(0, used-(l.burst-c[0].Decision.Remaining))
	_ = f.secondary.Allow(ctx, c[:])
}

func unavailable(cause error) error {
	if errors.Is(cause, ErrUnavailable) {
		return fmt.Errorf("algorithms: %w", cause)
	}
	return fmt.Errorf("algorithms: %w: %w", ErrUnavailable, cause)
}

// validate returns the mistakes of a call that no limiter will see whole.
func validate(checks []Check) error {
	items, err := newItems(nil, checks, Local)
	if err != nil {
		return err
	}
	for i := range items {
		same := func(j int) bool { return identityOf(&checks[j]) == identityOf(&checks[i]) }
		if err := share(items, i, same); err != nil {
			return err
		}
	}
	return nil
}
