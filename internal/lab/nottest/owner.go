// Package nottest lends redistest's servers and proxies to programs that are not tests.
package nottest

import (
	"context"
	"fmt"
	"os"
	"slices"
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

// Run calls f with an Owner, whose Close it calls afterwards. It returns what Do returns.
func Run(f func(o *Owner)) error {
	o := NewOwner()
	defer o.Close()
	return o.Do(func() { f(o) })
}

// Must returns v. If there is an error, it fails as Fatalf does. Call it within Do.
func Must[T any](v T, err error) T {
	Check(err)
	return v
}

// Check is Must without a value.
func Check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Close ends everything that was started with o, the latest first.
func (o *Owner) Close() {
	o.cancel()
	o.mu.Lock()
	cleanups := o.cleanups
	o.cleanups = nil
	o.mu.Unlock()
	for _, f := range slices.Backward(cleanups) {
		f()
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
	dir := Must(os.MkdirTemp("", "penstock-"))
	o.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
