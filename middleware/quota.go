package middleware

import (
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/headers"
)

// quotaConfig returns what clients are told of a limit.
func quotaConfig(name string, l algorithms.Limit) headers.QuotaConfig {
	if l.Algorithm().Concurrent() {
		return headers.QuotaConfig{Name: name, Limit: l.Requests(), Unit: "concurrent-requests"}
	}
	return headers.QuotaConfig{
		Name:       name,
		Limit:      l.Burst(),
		Requests:   l.Requests(),
		Window:     l.Window(),
		Continuous: l.Algorithm().Continuous(),
		Calendar:   l.Algorithm().Calendar(),
	}
}

// grid returns a time that the ends of an aligned limit's windows, counted from
// the epoch, are whole multiples of. Those of a calendar are whole minutes: no
// zone is any seconds from UTC any more.
func grid(l algorithms.Limit) time.Duration {
	if l.Algorithm().Calendar() {
		return time.Minute
	}
	return l.Window()
}
