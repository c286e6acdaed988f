package redistest

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// TestArgumentsThatRefuse wants each of these servers to refuse a script that writes, each with its own error.
func TestArgumentsThatRefuse(t *testing.T) {
	t.Parallel()
	primary, dead := Start(t), Start(t)
	dead.Kill()
	replicaOf := func(s *Server) []string { return []string{"--replicaof", "127.0.0.1", strconv.Itoa(s.port)} }
	alice := []string{"--user", "alice", "on", ">secret", "~rl:*", "+eval", "+set", "+ping"}
	tests := []struct {
		name     string
		args     []string
		user     string
		password string
		want     string
	}{
		{"no password", []string{"--requirepass", "secret"}, "", "", "NOAUTH "},
		{"wrong password", []string{"--requirepass", "secret"}, "default", "guess", "WRONGPASS "},
		{"no permission", alice, "alice", "secret", "NOPERM "},
		{"full", []string{"--maxmemory", "1"}, "", "", "OOM "},
		{"no replicas", []string{"--min-replicas-to-write", "1"}, "", "", "NOREPLICAS "},
		{"replica", replicaOf(primary), "", "", "READONLY "},
		{"replica without primary", append(replicaOf(dead), "--replica-serve-stale-data", "no"), "", "", "MASTERDOWN "},
		{"Cluster without slots", []string{"--cluster-enabled", "yes"}, "", "", "CLUSTERDOWN "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.want == "NOREPLICAS " {
				SkipOn(t, "KeyDB", "KeyDB lets scripts write without replicas")
			}
			s := Start(t, tt.args...)
			o := s.quiet()
			o.Username, o.Password = tt.user, tt.password
			wantRefusal(t, o, tt.want)
			s.Restart()
			wantRefusal(t, o, tt.want)
		})
	}
}

func wantRefusal(t *testing.T, o *redis.Options, want string) {
	t.Helper()
	client := redis.NewClient(o)
	defer client.Close()
	// Redis 6.2 puts the place in the script before the code of the error.
	if err := write(t.Context(), client); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// write runs a script that sets k.
func write(ctx context.Context, client *redis.Client) error {
	return client.Eval(ctx, "return redis.call('SET', KEYS[1], 1)", []string{"k"}).Err()
}

func TestTooManyClients(t *testing.T) {
	t.Parallel()
	s := Start(t, "--maxclients", "2")
	var err error
	for range 3 {
		client := redis.NewClient(s.quiet())
		defer client.Close()
		err = client.Ping(t.Context()).Err()
	}
	// The error is the server's refusal, or a broken pipe if the server closes the connection first.
	if err == nil {
		t.Error("got no error for the third of two clients")
	}
}

// TestStatesAndBack brings a server with a key into each state, and back where there is a way. In the state the server must refuse writes.
// Afterwards it must have its key and take writes.
func TestStatesAndBack(t *testing.T) {
	t.Parallel()
	tests := []struct {
		want       string
		begin, end func(*Server)
	}{
		{"LOADING ", (*Server).RestartLoading, (*Server).FinishLoading},
		{"BUSY ", (*Server).StartScript, (*Server).KillScript},
		{"MISCONF ", (*Server).BreakSaves, nil},
	}
	for _, tt := range tests {
		t.Run(strings.TrimSpace(tt.want), func(t *testing.T) {
			t.Parallel()
			s := Start(t)
			client := redis.NewClient(s.quiet())
			defer client.Close()
			if err := client.Set(t.Context(), "before", "v", 0).Err(); err != nil {
				t.Fatal(err)
			}
			tt.begin(s)
			wantRefusal(t, s.quiet(), tt.want)
			if tt.end == nil {
				return
			}
			tt.end(s)
			if err := write(t.Context(), s.Client()); err != nil {
				t.Errorf("after the end: %v", err)
			}
			if got := s.Client().Exists(t.Context(), "before", "k").Val(); got != 2 {
				t.Errorf("got %d of 2 keys", got)
			}
			tt.begin(s) // the end of the test ends a server in trouble, too
		})
	}
}

// TestRestartKeepsWhatIsToBeKept restarts servers that keep their data.
func TestRestartKeepsWhatIsToBeKept(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		args []string
		save func(context.Context, *redis.Client) error
	}{
		{"log", []string{"--appendonly", "yes", "--appendfsync", "always"}, nil},
		{"dump", nil, func(ctx context.Context, client *redis.Client) error { return client.Save(ctx).Err() }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := Start(t, tt.args...)
			if err := write(t.Context(), s.Client()); err != nil {
				t.Fatal(err)
			}
			if tt.save != nil {
				if err := tt.save(t.Context(), s.Client()); err != nil {
					t.Fatal(err)
				}
			}
			s.Kill()
			s.Restart()
			if got, err := s.Client().Get(t.Context(), "k").Result(); got != "1" || err != nil {
				t.Errorf("GET: got %q, %v; want 1 and no error", got, err)
			}
		})
	}
}
