// The part of the package that only its tests call.

package overrides

import "context"

// Sweep removes ended overrides, as the goroutine does once a minute.
func (r *Redis) Sweep(ctx context.Context) { r.sweep(ctx) }
