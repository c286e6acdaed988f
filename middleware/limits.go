// The limits of the configuration, and which of them exclude each other.

package ratelimit

import (
	"errors"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
)

// A limit is a limit of the configuration, and its description for headers.
type limit struct {
	algorithms.Limit
	concurrent bool
	quota      *headers.Quota // nil: headers keep silent
}

func newLimit(p *Policy, l algorithms.Limit) (*limit, error) {
	described := &limit{Limit: l, concurrent: l.Algorithm().Concurrent()}
	if p.hidden() || p.Shadow {
		return described, nil
	}
	var err error
	described.quota, err = headers.NewQuota(quotaConfig(p.Name, l))
	return described, err
}

// leakyBucket is the algorithm whose units cannot be settled later.
var leakyBucket = algorithms.LeakyBucket(1, time.Second).Algorithm()

// limitKinds are the kinds of limits of one decision that exclude each other.
type limitKinds struct{ leaky, concurrent bool }

func (k *limitKinds) add(l algorithms.Limit) {
	k.leaky = k.leaky || l.Algorithm() == leakyBucket
	k.concurrent = k.concurrent || l.Algorithm().Concurrent()
}

func (k limitKinds) validate() error {
	if k.leaky && k.concurrent {
		return errors.New("a leaky-bucket and a concurrent limit cannot be in one Middleware: a held request would occupy " +
			"the concurrent limit. Make two, the leaky bucket outside")
	}
	return nil
}

// quotaConfig describes a limit for headers.
func quotaConfig(name string, l algorithms.Limit) headers.QuotaConfig {
	if l.Algorithm().Concurrent() {
		return headers.QuotaConfig{Name: name, Limit: l.Requests(), Unit: "concurrent-requests"}
	}
	return headers.QuotaConfig{
		Name: name, Limit: l.Burst(), Requests: l.Requests(), Window: l.Window(),
		Continuous: l.Algorithm().Continuous(), Calendar: l.Algorithm().Calendar(),
	}
}
