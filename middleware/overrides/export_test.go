// The part of the package that only its tests call.

package overrides

import "context"

// Sweep removes ended overrides, as the goroutine does once a minute.
func (r *Redis) Sweep(ctx context.Context) { r.sweep(ctx) }

// Size returns the number of overrides in memory, also of ended ones.
func (k *known) Size() (n int) {
	for _, e := range k.table.Load().policies {
		n += e.n
	}
	return n
}
