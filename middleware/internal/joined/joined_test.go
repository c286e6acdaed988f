package joined_test

import (
	"errors"
	"io"
	"testing"

	"github.com/penstock-go/penstock/middleware/internal/joined"
)

func TestPrefix(t *testing.T) {
	if got := joined.Prefix("p", nil); got != nil {
		t.Errorf("got %v without an error, want nil", got)
	}
	got := errors.Join(joined.Prefix("p", errors.Join(io.EOF, errors.Join(io.ErrNoProgress, io.ErrShortWrite)))...)
	if want := "p: EOF\np: multiple Read calls return no data or error\np: short write"; got.Error() != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
	if !errors.Is(got, io.ErrShortWrite) {
		t.Error("the errors are not wrapped")
	}
}
