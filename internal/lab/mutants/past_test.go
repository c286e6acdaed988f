package main

import (
	"testing"

	"github.com/penstock-go/penstock/internal/lab/command"
)

func TestPastBugsFitTheCode(t *testing.T) {
	root, err := command.Product(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range pastBugs {
		if _, err := pastBugs[i].mutant(root); err != nil {
			t.Error(err)
		}
	}
}
