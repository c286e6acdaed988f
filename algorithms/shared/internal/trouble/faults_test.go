// Reasons and faults, and their texts for operators.

package trouble

import (
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// reasons are the reasons that the documentation of Reason has.
var reasons = []string{
	"unavailable", "timeout", "overload", "failover", "capacity", "configuration", "key", "cancelled", "internal",
}

// Every row has one of the reasons, and only misconfigurations come with advice.
func TestReasons(t *testing.T) {
	used := make(map[string]bool)
	for i := range troubles {
		r := &troubles[i]
		used[r.Reason] = true
		if !slices.Contains(reasons, r.Reason) || i > 0 && (r.Fault != nil) != (r.Reason == Configuration) {
			t.Errorf("%q %v: got reason %q and fault %v", r.says, r.is, r.Reason, r.Fault)
		}
	}
	for _, reason := range reasons {
		if !used[reason] {
			t.Errorf("no error has the reason %q", reason)
		}
	}
	if got := Reasons[:]; !slices.Equal(got, reasons) {
		t.Errorf("got reasons %q, want %q", got, reasons)
	}
	if got := Of(nil).Reason; got != "" {
		t.Errorf("no error: got reason %q, want none", got)
	}
}

// Every fault has a name of its own and advice, and the documentation has it.
func TestFaults(t *testing.T) {
	source, err := os.ReadFile("../../redis_errors.go")
	if err != nil {
		t.Fatal(err)
	}
	runbook, err := os.ReadFile("../../../../RUNBOOK.md")
	if err != nil {
		t.Fatal(err)
	}
	_, doc, _ := strings.Cut(string(source), "// Fault is ")
	doc, _, _ = strings.Cut(doc, "Fault string")
	documented := strings.FieldsFunc(doc, func(r rune) bool { return !unicode.IsLetter(r) })
	names := make(map[string]*Fault)
	for i := range troubles {
		f := troubles[i].Fault
		if f == nil {
			continue
		}
		if known := names[f.Name]; known != nil && known != f || f.Advice == "" {
			t.Errorf("%q: got two faults of this name, or no advice", f.Name)
		}
		names[f.Name] = f
		if !slices.Contains(documented, f.Name) || !strings.Contains(string(runbook), "\n| `"+f.Name+"` | ") {
			t.Errorf("%q is not documented in Misconfiguration and in RUNBOOK.md", f.Name)
		}
	}
}
