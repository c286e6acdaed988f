// All measures, and what they share.

package main

import (
	"slices"
	"time"
)

// These quotas admit every check of a measure, so that every contestant writes. That
// costs more than a denial.
var (
	perMinute = quota{1_000, time.Minute}     // for many keys
	perSecond = quota{1_000_000, time.Second} // for one key
	// perDay refills nothing while keys are counted, so that none expires.
	perDay = quota{100, 24 * time.Hour}
)

const (
	second  = time.Second
	instant = 300 * time.Millisecond // long enough for checks of 100 ns

	// closeTimes is how many rounds take the place of one where contestants differ by less than rounds do.
	closeTimes = 2
)

var measures = slices.Concat(
	curve(), aheadMeasures(), []measure{policyMeasure, hotMeasure, memoryMeasure}, keyMeasures, []measure{middlewareMeasure, denialMeasure})
