// The units that operators give back.

package console

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

// everyAlgorithm has a limit of each algorithm that has a state. Of a limit, only
// the algorithm decides where a key's state is.
var everyAlgorithm = []algorithms.Limit{
	algorithms.TokenBucket(1, time.Second), algorithms.LeakyBucket(1, time.Second),
	algorithms.SlidingWindowCounter(1, time.Second), algorithms.SlidingWindowLog(1, time.Second),
	algorithms.FixedWindow(1, time.Second), algorithms.PerDay(1, nil), algorithms.Concurrent(1, time.Second),
}

// Reset forgets the units that a key has used of a policy and its candidate, under every limit. It returns how many units
// of the limit came back: of several limits that Who lists, the most. It keeps overrides and bans. If a ban still denies
// the key, the error wraps [ErrBanned], and the units are back nevertheless.
func (c *Console) Reset(ctx context.Context, s Subject) (units int64, err error) {
	return c.giveBack(ctx, s, algorithms.Check{Op: algorithms.Reset})
}

// Grant gives a key units back: at least one, at most the used units. It cuts nothing, so it needs neither the client's
// tier nor its limit. The results are Reset's.
func (c *Console) Grant(ctx context.Context, s Subject, units int64) (given int64, err error) {
	if units < 1 {
		return 0, fmt.Errorf("ratelimit: %w: a grant of %d units: want at least 1", algorithms.ErrInvalid, units)
	}
	given, err = c.giveBack(ctx, s, algorithms.Check{Op: algorithms.Grant, Cost: units})
	return min(given, units), err
}

// giveBack settles a key under a limit of each algorithm, a Reset also for the policy's candidate, and returns how many
// units came back. Requests that come meanwhile can hide some.
func (c *Console) giveBack(ctx context.Context, s Subject, settlement algorithms.Check) (units int64, err error) {
	t, err := c.one(s)
	if err != nil {
		return 0, err
	}
	names := []string{t.policy.Name}
	if settlement.Op == algorithms.Reset && t.policy.Candidate != nil {
		names = append(names, t.policy.Name+"~candidate")
	}
	var checks []algorithms.Check
	for _, name := range names {
		for _, l := range everyAlgorithm {
			settlement.Policy, settlement.Key, settlement.Limit = name, t.key, l
			checks = append(checks, settlement)
		}
	}
	limits := t.limits(c.lastDenial(t))
	after := slices.Clone(limits)
	if err := t.look(ctx, limits); err != nil {
		return 0, err
	}
	if err := t.ask(ctx, checks); err != nil {
		return 0, err
	}
	if err := t.look(ctx, after); err != nil {
		return 0, err
	}
	for i, before := range limits {
		units = max(units, after[i].Remaining-before.Remaining)
	}
	return units, c.stillBanned(ctx, Subject{Policy: s.Policy, Key: t.key})
}
