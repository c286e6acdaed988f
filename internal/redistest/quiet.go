package redistest

import (
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// quietClient returns a client that does not retry, and sends as few commands of its own as go-redis allows.
func (s *Server) quietClient() *redis.Client { return redis.NewClient(s.quiet()) }

// patientClient is quietClient for commands that take their time on a busy machine.
func (s *Server) patientClient() *redis.Client {
	o := s.quiet()
	o.ReadTimeout = deadline
	return redis.NewClient(o)
}

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
