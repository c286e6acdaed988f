package redistest

import (
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// ask sends a command once, with a client of its own, and waits a second for the reply.
func (s *Server) ask(args ...any) *redis.Cmd { return s.askFor(time.Second, args...) }

// askFor is ask for commands that take their time on a busy machine.
func (s *Server) askFor(patience time.Duration, args ...any) *redis.Cmd {
	o := s.quiet()
	o.ReadTimeout = patience
	client := redis.NewClient(o)
	defer client.Close()
	return client.Do(s.tb.Context(), args...)
}

// quiet has the options of a client that does not retry, and sends as few commands of its own as go-redis allows.
func (s *Server) quiet() *redis.Options {
	return &redis.Options{
		Addr:                     s.Addr(),
		Protocol:                 2,
		DisableIdentity:          true,
		MaxRetries:               -1,
		DialerRetries:            1,
		DialTimeout:              time.Second,
		ReadTimeout:              time.Second,
		PoolSize:                 1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}
