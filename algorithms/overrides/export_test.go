// What the tests see of the package.

package overrides

import "context"

// Sweep does what the goroutine does once a minute.
func (r *Redis) Sweep(ctx context.Context) { r.sweep(ctx) }
