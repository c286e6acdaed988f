package fleet
import ("context";"github.com/redis/go-redis/v9")
type silent struct{}
func (silent) Printf(context.Context, string, ...any) {}
func init() { redis.SetLogger(silent{}) }
