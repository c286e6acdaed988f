//go:build !linux

package main

import (
	"errors"
	"io"
)

func serveRelay(string, int, io.Writer) error {
	return errors.New("a network needs Linux: leave its measures out with -only")
}
