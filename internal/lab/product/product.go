// Package product finds the module that the programs of the lab build and test.
package product

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

const module = "github.com/penstock-go/penstock"

// Dir returns the directory of the product's module. It asks the go command, so the working directory must be in the lab.
func Dir(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("go list -m %s: %w; run this in internal/lab", module, err)
	}
	return strings.TrimSpace(string(out)), nil
}
