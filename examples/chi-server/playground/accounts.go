// The accounts of the demonstration.

package playground

import (
	"context"

	"github.com/penstock-go/penstock/keyfunc"
)

// accounts are the accounts of the demonstration, by their API keys.
var accounts = map[string]keyfunc.Identity{
	"demo-free":       {ID: "merchant-1", Tier: "free"},
	"demo-pro":        {ID: "merchant-2", Tier: "pro"},
	"demo-enterprise": {ID: "merchant-3", Tier: "enterprise"},
}

// Lookup returns the account of an API key. A service would ask its database,
// through a bounded cache that also remembers unknown keys.
func Lookup(_ context.Context, apiKey string) (keyfunc.Identity, error) {
	identity, ok := accounts[apiKey]
	if !ok {
		return keyfunc.Identity{}, keyfunc.ErrUnknown
	}
	return identity, nil
}

// Tiers returns the tiers of the accounts, by their IDs.
func Tiers() map[string]string {
	tiers := make(map[string]string)
	for _, account := range accounts {
		tiers[account.ID] = account.Tier
	}
	return tiers
}
