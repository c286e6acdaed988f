//go:build !linux

package main

import (
	"errors"
	"io"
	"time"
)

var errNotLinux = errors.New("a network needs Linux: leave its measures out with -only")

func serveRelay(string, int, io.Writer) error { return errNotLinux }

func ping(string, time.Duration) (time.Duration, error) { return 0, errNotLinux }

func keepAwake() (io.Closer, error) { return nil, errors.New("only Linux has the request") }
