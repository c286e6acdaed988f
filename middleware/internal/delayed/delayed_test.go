package delayed

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestHold: a request waits for its turn exactly, or says why not.
func TestHold(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(r *Requests, hangUp func())
		want error
	}{
		"its turn":  {func(*Requests, func()) {}, nil},
		"a hang-up": {func(_ *Requests, hangUp func()) { hangUp() }, context.Canceled},
		"a release": {func(r *Requests, _ func()) { r.Release(); r.Release() }, ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, began := New(), time.Now()
				ctx, hangUp := context.WithCancel(t.Context())
				defer hangUp()
				go func() {
					time.Sleep(time.Second)
					tt.end(r, hangUp)
				}()
				var got error
				r.Hold(ctx, time.Minute, func(why error) { got = why })
				lasted := time.Minute
				if tt.want != nil {
					lasted = time.Second
				}
				if !errors.Is(got, tt.want) || time.Since(began) != lasted {
					t.Errorf("got error %v after %v, want %v after %v", got, time.Since(began), tt.want, lasted)
				}
				synctest.Wait()
			})
		})
	}
}

// TestWait waits for what abandoned requests do, and no longer than its context.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New()
		go r.Hold(t.Context(), time.Hour, func(error) { time.Sleep(10 * time.Second) })
		synctest.Wait()
		r.Release()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v of a Wait of a second, want its context's error", err)
		}
		began := time.Now()
		if err := r.Wait(t.Context()); err != nil || time.Since(began) != 9*time.Second {
			t.Errorf("got error %v after %v, want none after 9s", err, time.Since(began))
		}
		var got error
		if r.Hold(t.Context(), time.Hour, func(why error) { got = why }); !errors.Is(got, ErrClosed) {
			t.Errorf("got error %v after Release, want ErrClosed", got)
		}
	})
}
