// Tenants that share a limit.

package console

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/internal/shares"
)

// sharer reports whether the key is that of a tenant, which shares the policy's limit.
func (t *target) sharer() bool {
	return t.policy.ShareBy != (keyfunc.Key{}) && accountOf(t.key) != ""
}

// shares returns the shares that the tenant may have: one for each weight, because the console does not know its tier.
func (t *target) shares() (all []LimitState) {
	weights := append(slices.Collect(maps.Values(t.policy.Weights)), 1)
	slices.Sort(weights)
	_, sum := t.m.Inside().Tenants(t.policy.Name)
	key := append(t.constants(), ratelimit.Everyone)[0]
	whole := t.inForce(key, "", algorithms.Limit{}).Limit
	for _, w := range slices.Compact(weights) {
		all = append(all, LimitState{Reason: ByShare, Limit: shares.Of(whole, w, max(sum, w), 1)})
	}
	return all
}

// borrow judges a tenant that may have used up its share: it may use what is left of the limit.
func (t *target) borrow(ctx context.Context, s *Standing) error {
	for _, form := range t.constants() {
		checks := []algorithms.Check{{Policy: t.policy.Name, Key: form, Limit: t.inForce(form, "", algorithms.Limit{}).Limit, Exact: true}}
		if err := t.ask(ctx, checks); err != nil {
			return err
		}
		d := &checks[0].Decision
		if d.Remaining > 0 {
			s.Verdict, s.Reason, s.ClearsAfter = Admitted, ByShare, 0
			return nil
		}
		if s.Verdict == Denied {
			s.ClearsAfter = min(s.ClearsAfter, Wait(d.UnitAfter))
		}
	}
	return nil
}

// ofShare says what a tenant has left of its share, and whether it borrows.
func (s *Standing) ofShare() string {
	l := s.Limits[0]
	text := fmt.Sprintf("its share, %v, has %d left", l.Limit, l.Remaining)
	switch {
	case s.Verdict == Denied:
		text += ", and the limit is full"
	case l.Remaining == 0:
		text += ", and the limit is not full, so it borrows"
	}
	return text
}

func (w *watched) constants() (all []string) {
	for _, form := range w.forms {
		if len(form) == 1 && kindOf(form[0]) == "const" {
			all = append(all, form[0])
		}
	}
	return all
}
