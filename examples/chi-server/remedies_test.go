// The test that remedies help, and do no harm.

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/internal/redistest"
)

// TestRemedyForEvictions: after each of RUNBOOK's commands for PS201, in its order, a full Redis accepts writes, and after
// the last one it evicts nothing.
func TestRemedyForEvictions(t *testing.T) {
	t.Parallel()
	runbook, err := os.ReadFile(filepath.Join("..", "..", "RUNBOOK.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(runbook), "### RateLimitFinding\n")
	section, _, _ = strings.Cut(section, "\n### ")
	remedies := regexp.MustCompile(`(?m)^\$ (redis-cli .* config set .*)$`).FindAllStringSubmatch(section, -1)
	if len(remedies) != 2 {
		t.Fatalf("got %q, want two commands", remedies)
	}
	redis := redistest.Start(t, "--maxmemory", "3mb", "--maxmemory-policy", "allkeys-lru")
	client := redis.Client()
	fill := func() error {
		return client.Eval(t.Context(), "for i = 1, 10000 do redis.call('set', ARGV[1] .. i, string.rep('x', 100)) end return 1", nil, "key").Err()
	}
	if err := fill(); err != nil {
		t.Fatal(err)
	}
	for _, remedy := range remedies {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(remedy[1], "MEMORY", "100mb"))
		cmd.Env = append(os.Environ(), "REDIS=redis://"+redis.Addr())
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "OK") {
			t.Fatalf("%s: got %v and %s", remedy[1], err, out)
		}
		if err := fill(); err != nil {
			t.Errorf("after %s: got %v, want that Redis writes", remedy[1], err)
		}
	}
	if n, err := client.DBSize(t.Context()).Result(); n != 10_000 || err != nil {
		t.Errorf("got %d keys and %v, want all 10 000", n, err)
	}
}
