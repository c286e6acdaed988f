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
	Concurrent bool
	Quota      *headers.Quota // nil: headers keep silent
}

// New returns a limit of a policy. Headers keep silent about it unless it is advertised.
func New(policy string, l algorithms.Limit, advertised bool) (*Limit, error) {
	described := &Limit{Limit: l, Concurrent: l.Algorithm().Concurrent()}
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

// Validate reports why a policy cannot have a valid limit. chargesLater says that it has a
// ChargeIf. It reports nothing of a limit that no policy can have: Limit.Validate does.
func Validate(l algorithms.Limit, chargesLater bool) error {
	if l.Validate() != nil {
		return nil
	}
	var errs []error
	concurrent := l.Algorithm().Concurrent()
	if concurrent && l.Window() < settle.MinHold {
		errs = append(errs, fmt.Errorf("a concurrent limit's hold time is %v: want at least %v", l.Window(), settle.MinHold))
	}
	if concurrent && chargesLater {
		errs = append(errs, errors.New("a concurrent limit and ChargeIf cannot be combined: the units come back when the handler returns"))
	}
	if l.Algorithm() == leakyBucket && chargesLater {
		errs = append(errs, errors.New("a leaky-bucket limit and ChargeIf cannot be combined: the requests behind one have been promised their turns"))
	}
	return errors.Join(errs...)
}

// ValidateAll validates all limits of a policy, and reports each reason once.
func ValidateAll(all []algorithms.Limit, chargesLater bool) error {
	var errs []error
	said := make(map[string]bool)
	for _, l := range all {
		if err := Validate(l, chargesLater); err != nil && !said[err.Error()] {
			said[err.Error()] = true
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
