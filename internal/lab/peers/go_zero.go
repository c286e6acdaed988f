package main

import (
	"time"

	"github.com/zeromicro/go-zero/core/limit"
	"github.com/zeromicro/go-zero/core/logx"
	zeroredis "github.com/zeromicro/go-zero/core/stores/redis"
)

const (
	periodFile = "core/limit/periodlimit.go"
	tokenFile  = "core/limit/tokenlimit.go"
)

var (
	periodTakes = quote{"Take requests a permit, it returns the permit state.", periodFile}
	tokenAllows = quote{"AllowN reports whether n events may happen at time now.", tokenFile}
	tokenRate   = quote{"A TokenLimiter controls how frequently events are allowed to happen with in one second.", tokenFile}
)

var goZeroPeriod = library{
	name: "go-zero PeriodLimit", slug: "go-zero-period", module: "github.com/zeromicro/go-zero", store: "Redis",
	open: func(t *trial, q quota) (*limiter, error) {
		store, err := goZeroStore(t)
		if err != nil {
			return nil, err
		}
		l := limit.NewPeriodLimit(int(q.window.Seconds()), q.requests, store, "period:")
		return &limiter{take: func(key string) (answer, error) {
			state, err := l.Take(key)
			return answer{allowed: state == limit.Allowed || state == limit.HitQuota, remaining: untold, wait: untold}, err
		}}, nil
	},
	absent: []string{"several", "remaining", "wait", "burst", "outage", "outage-limit", "forged", "refund"},
	shown:  []string{"outage", "outage-limit"},
	says:   map[string]quote{"": periodTakes},
}

// goZeroToken has rates in whole units per second, so its limits refill at one per second at least.
var goZeroToken = library{
	name: "go-zero TokenLimiter", slug: "go-zero-token", module: "github.com/zeromicro/go-zero", store: "Redis",
	open: func(t *trial, q quota) (*limiter, error) {
		store, err := goZeroStore(t)
		if err != nil {
			return nil, err
		}
		limiters := &perKey[*limit.TokenLimiter]{make: func(key string) *limit.TokenLimiter {
			return limit.NewTokenLimiter(max(1, int(q.perSecond())), q.requests, store, key)
		}}
		takeN := func(key string, n int) (answer, error) {
			return answer{allowed: limiters.of(key).AllowN(time.Now(), n), remaining: untold, wait: untold}, nil
		}
		return &limiter{take: func(key string) (answer, error) { return takeN(key, 1) }, takeN: takeN}, nil
	},
	slowest: time.Second,
	absent:  []string{"several", "remaining", "wait", "outage-limit", "forged", "refund"},
	shown:   []string{"outage-limit"},
	says:    map[string]quote{"": tokenAllows, "outage-limit": tokenRate},
}

// go-zero logs every error, and each minute how much memory it uses.
func init() { logx.Disable() }

func goZeroStore(t *trial) (*zeroredis.Redis, error) {
	return zeroredis.NewRedis(zeroredis.RedisConf{Host: t.redis(), Type: zeroredis.NodeType})
}
