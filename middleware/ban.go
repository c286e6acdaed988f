package ratelimit

import (
	"context"
	"errors"
	"time"

	"github.com/penstock-go/penstock/middleware/internal/ban"
)

// A Ban locks out repeat offenders. After Denials denials Within a period, the
// policy denies every request of the key for a time, on all instances. While
// Redis is down, no key is banned. Do not ban keys that many clients share,
// such as a company's address.
type Ban struct {
	// Denials within Within bring a ban: 1 to 1 000.
	Denials int64
	Within  time.Duration

	// For is the length of the first ban, in whole seconds. Choose at least the limit's window: a shorter ban ends while
	// the limit still denies. Each further ban lasts twice as long, up to Max; a Max of 0 means For. One doubling is
	// forgotten per 2·Max. A changed Max ends all bans.
	For, Max time.Duration
}

func (b *Ban) validate(p *Policy) error {
	errs := []error{(*ban.Rule)(b).Validate()}
	if p.Shadow {
		errs = append(errs, errors.New("ban: Shadow and Ban cannot be combined: a shadow policy denies nothing"))
	}
	if p.Capacity {
		errs = append(errs, errors.New("ban: Capacity and Ban cannot be combined: one client would lock out all"))
	}
	return errors.Join(errs...)
}

func (m *Middleware) countTowardsBan(p *policy, key string) {
	m.settler.Soon("", true, func(ctx context.Context) error {
		banned, err := p.bans.Strike(ctx, m.limiter, key)
		if err == nil && banned > 0 {
			m.observe(ctx, &Event{Kind: Banned, Policy: p.Name, Elapsed: banned})
		}
		return err
	})
}
