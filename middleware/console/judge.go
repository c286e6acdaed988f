// Which limit decides about a key, and what it decides.

package console

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/internal/wrapped"
)

// whole reports whether all parts of the key have a value.
func whole(key string) bool {
	return !slices.ContainsFunc(strings.Split(key, "|"), func(part string) bool { return !strings.Contains(part, "=") })
}

// account returns the account in a key; "" for none.
func accountOf(key string) string {
	for part := range strings.SplitSeq(key, "|") {
		if kindOf(part) == account {
			return part
		}
	}
	return ""
}

// lastDenial returns what the last denial of the key showed of its client; nil if the
// process knows none. Another key of the same account shows the tier, too.
func (c *Console) lastDenial(t *target) *ratelimit.Offender {
	var last *ratelimit.Offender
	for _, o := range t.offenders {
		if o.Plain == t.key && (last == nil || o.Last.After(last.Last)) {
			last = &o
		}
	}
	id := accountOf(t.key)
	if last != nil || id == "" || t.policy.LimitOf != nil {
		return last
	}
	for other := range c.policies() {
		for _, o := range other.offenders {
			_, has := t.policy.Tiers[o.Tier]
			if accountOf(o.Plain) == id && (has || other.policy.Name == t.policy.Name) && (last == nil || o.Last.After(last.Last)) {
				last = &o
			}
		}
	}
	return last
}

// limits returns the limits that may decide. last is the last denial of the client;
// nil means none.
func (t *target) limits(last *ratelimit.Offender) []LimitState {
	in := func(tier string, own algorithms.Limit) LimitState {
		f := t.inForce(t.key, tier, own)
		l := LimitState{Reason: Reason(f.From), Limit: f.Limit}
		if l.Reason == ByTier {
			l.Tier = tier
		}
		return l
	}
	if t.sharer() {
		return t.shares()
	}
	if last != nil {
		return []LimitState{in(last.Tier, last.LimitOf)}
	}
	all := []LimitState{in("", algorithms.Limit{})}
	if all[0].Reason == ByDefault && accountOf(t.key) != "" {
		for _, tier := range slices.Sorted(maps.Keys(t.policy.Tiers)) {
			all = append(all, in(tier, algorithms.Limit{}))
		}
	}
	return all
}

func (t *target) look(ctx context.Context, limits []LimitState) error {
	for i := range limits {
		if err := t.lookAt(ctx, &limits[i]); err != nil {
			return err
		}
	}
	return nil
}

func (t *target) lookAt(ctx context.Context, l *LimitState) error {
	checks := []algorithms.Check{{Policy: t.policy.Name, Key: t.key, Limit: l.Limit, Exact: true}}
	if t.sharer() {
		checks[0].Policy += "~share"
	}
	if err := t.ask(ctx, checks); err != nil {
		return err
	}
	d := &checks[0].Decision
	l.Remaining, l.ResetAfter, l.UnitAfter, l.Source = d.Remaining, Wait(d.ResetAfter), Wait(d.UnitAfter), d.Source.String()
	_, limiter := t.m.Limiter()
	if store, ok := wrapped.Find[interface{ StoredKey(algorithms.Check) string }](limiter); ok {
		l.Stored = store.StoredKey(checks[0])
	}
	return nil
}

// judge fills in the verdict, its reason, and when it clears.
func (t *target) judge(ctx context.Context, s *Standing) error {
	var banned time.Duration
	var err error
	if t.policy.Ban != nil && t.mode == "" {
		banned, err = t.bannedByPolicy(ctx)
	}
	switch mode := t.mode; {
	case err != nil:
		return err
	case mode == ratelimit.ModeBanned:
		t.judgeBan(s)
	case mode == ratelimit.ModeOff, mode == ratelimit.ModeShadow && !t.policy.Shadow:
		s.Verdict, s.Reason = Admitted, ByOverride
	case t.away(s.Limits) && t.policy.Fail != algorithms.FailLocal:
		s.Verdict, s.Reason = Admitted, ByOutage
		if t.policy.Fail == algorithms.FailClosed {
			s.Verdict = Denied
		}
	case banned > 0:
		s.Verdict, s.Reason, s.ClearsAfter = Denied, ByBan, Wait(banned)
	default:
		t.judgeLimits(s)
		if t.sharer() && s.Verdict != Admitted {
			err = t.borrow(ctx, s)
		}
	}
	if t.policy.Shadow {
		s.Verdict, s.ClearsAfter = Admitted, 0
	}
	return err
}

// judgeBan gives the verdict about a key that an operator has banned.
func (t *target) judgeBan(s *Standing) {
	s.Verdict, s.Reason, s.ClearsAfter = Denied, ByBan, Wait(algorithms.Never)
	if until := t.override.Until; !until.IsZero() {
		s.ClearsAfter = Wait(max(0, time.Until(until)))
	}
}

// judgeLimits gives the verdict on which all limits agree that may decide.
func (t *target) judgeLimits(s *Standing) {
	full, clears := 0, Wait(0)
	for _, l := range s.Limits {
		if l.Remaining < 1 {
			full, clears = full+1, max(clears, l.UnitAfter)
		}
	}
	limitOf := t.policy.LimitOf != nil && s.Limits[0].Reason != ByOverride && s.Limits[0].Reason != ByLimitOf
	switch {
	case limitOf || full > 0 && full < len(s.Limits):
		s.Verdict = Unknown
		return
	case full > 0:
		s.Verdict, s.ClearsAfter = Denied, clears
	default:
		s.Verdict = Admitted
	}
	if len(s.Limits) == 1 {
		s.Reason = s.Limits[0].Reason
	}
}

// away reports whether the limiter counts together with other instances, and Redis
// did not answer for a limit.
func (t *target) away(limits []LimitState) bool {
	_, limiter := t.m.Limiter()
	counter, ok := wrapped.Find[wrapped.Counter](limiter)
	return ok && counter.Stats().Shared && limits[0].Source != algorithms.Shared.String()
}

// guessers returns Standing.Guessers.
func (t *target) guessers() int {
	if !t.apiKeys {
		return 0
	}
	slowed, all := t.m.Inside().Guesses(t.key)
	switch {
	case accountOf(t.key) != "":
		return all
	case slowed:
		return 1
	default:
		return 0
	}
}

// uncounted reports whether the key is an address for which the policy only meets
// unknown keys. The limiter counts nothing for it.
func (t *target) uncounted() bool {
	return kindOf(t.key) == address && !strings.Contains(t.key, "|") &&
		!slices.ContainsFunc(t.own, func(form []string) bool { return slices.Equal(form, []string{address}) })
}

// judgeUncounted gives the verdict about an uncounted key.
func (t *target) judgeUncounted(s *Standing) {
	s.Verdict = Admitted
	switch mode := t.mode; {
	case mode == ratelimit.ModeBanned:
		t.judgeBan(s)
	case t.override != nil && mode != "":
		s.Reason = ByOverride
	case s.Guessers > 0:
		s.Verdict = Unknown
	}
}

// guessing says how guesses change the answer; empty if they do not.
func (s *Standing) guessing() string {
	switch {
	case s.Guessers == 0 || s.Limits == nil:
		return ""
	case s.Guessers == 1:
		return "; 1 address sent unknown API keys, and a key that is new from it waits for its turn"
	default:
		return fmt.Sprintf("; %d addresses sent unknown API keys, and a key that is new from one of them waits for its turn", s.Guessers)
	}
}
