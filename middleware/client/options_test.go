package client_test

import (
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware/client"
)

// TestMisconfigurations: NewTransport reports all of them, one line each.
func TestMisconfigurations(t *testing.T) {
	memory := algorithms.NewMemory(nil)
	tests := []struct {
		o    client.Options
		want []string
	}{
		{client.Options{}, nil},
		{client.Options{Name: "stripe", Limiter: memory, Limit: algorithms.Concurrent(5, time.Second)}, nil},
		{client.Options{Name: "a b"}, []string{"Options.Name"}},
		{client.Options{MaxWait: -1}, []string{"Options.MaxWait is -1ns"}},
		{client.Options{Attempts: -1}, []string{"Options.Attempts is -1"}},
		{client.Options{Statuses: []int{429, 200, 600}}, []string{"has 200", "has 600"}},
		{client.Options{Limiter: memory}, []string{"Options.Limiter has no Options.Limit"}},
		{client.Options{Limit: algorithms.TokenBucket(1, time.Second)}, []string{"Options.Limiter is nil"}},
		{client.Options{Limiter: memory, Limit: algorithms.TokenBucket(-1, time.Second)}, []string{"Options.Limit: limit token-bucket -1/1s: requests", "the burst must be"}},
		{client.Options{Limiter: memory, Limit: algorithms.Nobody()}, []string{"lets no request pass"}},
		{client.Options{Limiter: memory, Limit: algorithms.Concurrent(1, time.Millisecond)}, []string{"holds units for 1ms"}},
		{client.Options{Observers: []client.Observer{nil}}, []string{"Options.Observers[0] is nil"}},
		{
			client.Options{Name: "-", MaxWait: -1, Attempts: -1, Statuses: []int{1}, Limiter: memory, Observers: []client.Observer{nil}},
			[]string{"Name", "MaxWait", "Attempts", "Statuses", "Limiter", "Observers"},
		},
	}
	for _, tt := range tests {
		transport, err := client.NewTransport(nil, &tt.o)
		if (err == nil) != (tt.want == nil) || (err == nil) != (transport != nil) {
			t.Errorf("%+v: got %v, %v", tt.o, transport, err)
			continue
		}
		if err == nil {
			continue
		}
		lines := strings.Split(err.Error(), "\n")
		if len(lines) != len(tt.want) {
			t.Errorf("%+v: got %q, want %d lines", tt.o, lines, len(tt.want))
			continue
		}
		for i, line := range lines {
			if !strings.HasPrefix(line, "ratelimit: client: ") || !strings.Contains(line, tt.want[i]) {
				t.Errorf("got %q, want %q", line, tt.want[i])
			}
		}
	}
	if transport, err := client.NewTransport(nil, nil); transport == nil || err != nil {
		t.Errorf("got %v, %v", transport, err)
	}
}

func TestKindNames(t *testing.T) {
	if got := client.GaveUp.String() + " " + client.EventKind(0).String() + " " + client.EventKind(99).String(); got != "gave_up unknown unknown" {
		t.Errorf("got %s", got)
	}
}
