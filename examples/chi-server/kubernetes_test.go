// The test of the objects for Kubernetes.

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/internal/longtest"
)

// TestKubernetes: the objects contain the rules, the alerts and the dashboards. It needs a shell, which some systems lack.
func TestKubernetes(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "sh", filepath.Join(observability, "kubernetes"), "release: mine").Output()
	if err != nil {
		t.Fatal(err)
	}
	objects := strings.Split(string(out), "---\n")[1:]
	want := []struct{ kind, after, indent, file string }{
		{"PrometheusRule", "spec:\n", "  ", "rules.yml"},
		{"PrometheusRule", "spec:\n", "  ", "alerts.yml"},
		{"ConfigMap", "  penstock.json: |\n", "    ", "dashboard.json"},
		{"ConfigMap", "  penstock-details.json: |\n", "    ", "dashboard-details.json"},
	}
	if len(objects) != len(want) {
		t.Fatalf("got %d objects, want %d", len(objects), len(want))
	}
	for i, w := range want {
		head, content, _ := strings.Cut(objects[i], w.after)
		if !strings.Contains(head, "\nkind: "+w.kind+"\n") || w.kind == "PrometheusRule" && !strings.Contains(head, "\n  labels: {release: mine}\n") {
			t.Errorf("%s: got\n%s", w.file, head)
		}
		source, err := os.ReadFile(filepath.Join(observability, w.file))
		if err != nil {
			t.Fatal(err)
		}
		var plain strings.Builder
		for line := range strings.Lines(content) {
			plain.WriteString(strings.TrimPrefix(line, w.indent))
		}
		if plain.String() != string(source) {
			t.Errorf("the object is not %s, indented", w.file)
		}
	}
}
