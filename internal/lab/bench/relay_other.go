//go:build !linux

package main

import (
	"context"
	"errors"
	"io"
	"time"
)

var errNotLinux = errors.New("a network needs Linux: leave its measures out with -only")

func serveRelay(string, int, io.Writer) error { return errNotLinux }

func ping(context.Context, string, int, time.Duration) (pings, error) { return pings{}, errNotLinux }

func keepAwake() (io.Closer, error) { return nil, errors.New("only Linux has the request") }

func cpuOf(int) (time.Duration, error) { return 0, errNotLinux }
