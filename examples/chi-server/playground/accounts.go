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

// Names are the accounts whose denials have series of their own, by their keys, under names
// that all who read the metrics may see.
var Names = map[string]string{"usr=merchant-1": "acme", "usr=merchant-2": "globex", "usr=merchant-3": "initech"}

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
