// Package nottest lends redistest's servers and proxies to programs that are not tests.
package nottest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
)

// An Owner is a testing.TB. Its Close ends everything that was started with it. It implements the methods that package
// redistest needs. All other methods panic.
type Owner struct {
	testing.TB // nil
	ctx        context.Context
	cancel     context.CancelFunc

	mu       sync.Mutex
	cleanups []func()
}

// NewOwner returns an Owner with which nothing has been started.
func NewOwner() *Owner {
	o := &Owner{}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	return o
}

// A failure is the value of Fatalf's panic, because there is no test to end.
type failure struct{ error }

// Do calls f. It returns the failure that would have ended a test, or nil.
func (o *Owner) Do(f func()) (err error) {
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case failure:
			err = reason.error
		default:
			panic(reason)
		}
	}()
	f()
	return nil
}

// Close ends everything that was started with o, the latest first.
func (o *Owner) Close() {
	o.cancel()
	o.mu.Lock()
	cleanups := o.cleanups
	o.cleanups = nil
	o.mu.Unlock()
	for i := len(cleanups) - 1; i >= 0; i-- {
		cleanups[i]()
	}
}

// Helper implements testing.TB.
func (o *Owner) Helper() {}

// Context implements testing.TB.
func (o *Owner) Context() context.Context { return o.ctx }

// Cleanup implements testing.TB.
func (o *Owner) Cleanup(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cleanups = append(o.cleanups, f)
}

// Errorf implements testing.TB.
func (o *Owner) Errorf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// Fatalf implements testing.TB. It must be called within Do.
func (o *Owner) Fatalf(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// TempDir implements testing.TB.
func (o *Owner) TempDir() string {
	dir, err := os.MkdirTemp("", "penstock-")
	if err != nil {
		panic(failure{errors.Join(errors.New("no directory for redis-server"), err)})
	}
	o.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
