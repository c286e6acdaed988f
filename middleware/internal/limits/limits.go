// Package limits has the limits of a configuration, their descriptions for headers, and
// which of them exclude each other.
package limits

import (
	"errors"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
	"github.com/penstock-go/penstock/middleware/internal/settle"
)

// A Limit is a limit of the configuration, and its description for headers.
type Limit struct {
	algorithms.Limit
	Quota *headers.Quota // nil: headers keep silent
}

// New returns a limit of a policy. Headers keep silent about it unless it is advertised.
func New(policy string, l algorithms.Limit, advertised bool) (*Limit, error) {
	described := &Limit{Limit: l}
	if !advertised {
		return described, nil
	}
	var err error
	described.Quota, err = headers.NewQuota(QuotaConfig(policy, l))
	return described, err
}

// QuotaConfig describes a limit for headers.
func QuotaConfig(policy string, l algorithms.Limit) headers.QuotaConfig {
	if l.Algorithm().Concurrent() {
		return headers.QuotaConfig{Name: policy, Limit: l.Requests(), Unit: "concurrent-requests"}
	}
	return headers.QuotaConfig{
		Name: policy, Limit: l.Burst(), Requests: l.Requests(), Window: l.Window(),
		Continuous: l.Algorithm().Continuous(), Calendar: l.Algorithm().Calendar(),
	}
}

// leakyBucket is the algorithm whose units cannot be settled later.
var leakyBucket = algorithms.LeakyBucket(1, time.Second).Algorithm()

// Kinds are the kinds of limits of one decision that exclude each other. The zero value
// is of no limit.
type Kinds struct{ leaky, concurrent bool }

// Add adds the kind of a limit.
func (k *Kinds) Add(l algorithms.Limit) {
	k.leaky = k.leaky || l.Algorithm() == leakyBucket
	k.concurrent = k.concurrent || l.Algorithm().Concurrent()
}

// Validate reports kinds that exclude each other.
func (k Kinds) Validate() error {
	if k.leaky && k.concurrent {
		return errors.New("a leaky-bucket and a concurrent limit cannot be in one Middleware: a held request would occupy " +
			"the concurrent limit. Make two, the leaky bucket outside")
	}
	return nil
}

// Validate reports why a policy cannot have one of several limits, each reason once. chargesLater says that it has a
// ChargeIf. It reports nothing of a limit that no policy can have: Limit.Validate does.
func Validate(chargesLater bool, all ...algorithms.Limit) error {
	var errs []error
	said := make(map[string]bool)
	refuse := func(text string) {
		if !said[text] {
			said[text] = true
			errs = append(errs, errors.New(text))
		}
	}
	for _, l := range all {
		concurrent := l.Algorithm().Concurrent()
		switch {
		case l.Validate() != nil:
			continue
		case concurrent && l.Window() < settle.MinHold:
			refuse(fmt.Sprintf("a concurrent limit's hold time is %v: want at least %v", l.Window(), settle.MinHold))
		case l.Algorithm() == leakyBucket && chargesLater:
			refuse("a leaky-bucket limit and ChargeIf cannot be combined: the requests behind one have been promised their turns")
		}
		if concurrent && chargesLater {
			refuse("a concurrent limit and ChargeIf cannot be combined: the units come back when the handler returns")
		}
	}
	return errors.Join(errs...)
}
