package algorithms

import (
	"context"
	"errors"
)

// settle applies settlements. Returns and renewals go to the limiter that issued
// their receipts; the others to the primary. Without that, forces go to the
// secondary, for what they charge counts locally too, and the primary is told of
// them as of takes; returns and renewals are dropped; grants and resets are
// errors, since an operator wants them to have happened.
func (f *Fallback) settle(ctx context.Context, checks []Check) error {
	var shared, local []int
	for i := range checks {
		switch c := &checks[i]; {
		case !c.Op.settles():
			return errMixed // which a part of the call would not show
		case c.Op.reads() && c.Decision.Receipt.source == Local:
			local = append(local, i)
		default:
			shared = append(shared, i)
		}
	}
	if local == nil {
		return f.settleShared(ctx, checks)
	}
	if err := f.settleLocally(ctx, checks, local, false); err != nil || shared == nil {
		return err
	}
	part := gather(checks, shared)
	err := f.settleShared(ctx, part)
	spread(checks, shared, part)
	return err
}

func (f *Fallback) settleShared(ctx context.Context, checks []Check) error {
	err := f.ask(ctx, checks)
	if err == nil {
		f.forget(checks)
		return nil
	}
	if errors.Is(err, ErrInvalid) {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := validate(checks); err != nil {
		return err
	}
	var forces []int
	var failed error
	for i := range checks {
		c := &checks[i]
		switch {
		case c.Op == Force && c.Fail != FailOpen:
			forces = append(forces, i)
			continue
		case c.Op == Grant || c.Op == Reset:
			failed = unavailable(err)
		}
		c.Decision = Decision{Allowed: true, Receipt: c.Decision.Receipt}
	}
	return errors.Join(failed, f.settleLocally(ctx, checks, forces, !executed(err)))
}

// settleLocally lets the secondary settle some of the checks. What it cannot is
// dropped. What it charges is owed to the primary, if owe is true.
func (f *Fallback) settleLocally(ctx context.Context, checks []Check, places []int, owe bool) error {
	share := f.portion()
	var local []Check
	var kept []int
	for _, i := range places {
		c := checks[i]
		c.Limit = share.of(c.Limit)
		if c.foreignReceipt() { // the share was another then
			checks[i].Decision = Decision{Allowed: true, Receipt: c.Decision.Receipt}
			continue
		}
		local, kept = append(local, c), append(kept, i)
	}
	if local == nil {
		return nil
	}
	now := f.now()
	if err := f.secondary.Allow(ctx, local); err != nil {
		if errors.Is(err, ErrInvalid) || ctx.Err() != nil {
			return err
		}
		for _, i := range kept {
			checks[i].Decision = Decision{Allowed: true, Receipt: checks[i].Decision.Receipt}
		}
		return nil
	}
	for j, i := range kept {
		if checks[i].Op == Return {
			f.owed.unrecord(&checks[i], checks[i].units())
		}
		checks[i].Decision = local[j].Decision
		if owe {
			f.owed.record(&checks[i], local[j].Limit, now)
		}
	}
	return nil
}

// forget drops what is known of keys that were credited at the primary, and
// credits them at the secondary: what was admitted in one outage is no more to
// count in the next. Of concurrent requests, those that run here are returned here.
func (f *Fallback) forget(checks []Check) {
	for i := range checks {
		c := &checks[i]
		if c.Op != Grant && c.Op != Reset {
			continue
		}
		f.seen.forget(c)
		f.owed.forget(c)
		if c.Limit.algorithm.Concurrent() {
			continue
		}
		local := *c
		local.Limit = f.portion().of(c.Limit)
		local.Cost, _ = mulDiv(c.units(), local.Limit.burst, c.Limit.burst)
		_ = f.secondary.Allow(context.Background(), []Check{local})
	}
}

func gather(checks []Check, places []int) []Check {
	part := make([]Check, len(places))
	for j, i := range places {
		part[j] = checks[i]
	}
	return part
}

func spread(checks []Check, places []int, part []Check) {
	for j, i := range places {
		checks[i].Decision = part[j].Decision
	}
}
