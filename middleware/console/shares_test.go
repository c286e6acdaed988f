package console_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/console"
	"github.com/penstock-go/penstock/middleware/overrides"
)

type tenantContext struct{}

// TestWhoOfTenants: who tells a tenant within its share from one that has used it up, and agrees with the next request.
func TestWhoOfTenants(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	l := algorithms.NewMemory(&algorithms.MemoryOptions{Now: func() time.Time { return at }})
	table := overrides.NewMemory()
	m := ratelimit.Must(ratelimit.New(l, &ratelimit.Options{Overrides: table}, ratelimit.Policy{
		Name: "capacity", Key: keyfunc.Const("all"), Capacity: true, Limit: algorithms.TokenBucket(4, time.Minute),
		ShareBy: keyfunc.User(func(ctx context.Context) (keyfunc.Identity, bool) {
			id, ok := ctx.Value(tenantContext{}).(string)
			return keyfunc.Identity{ID: id}, ok
		}),
	}))
	ask := func(id string) bool {
		v, err := m.Check(httptest.NewRequest(http.MethodGet, "/", nil).WithContext(context.WithValue(t.Context(), tenantContext{}, id)))
		if err != nil {
			t.Fatal(err)
		}
		return v.Allowed
	}
	c := console.New(m)
	ask("quiet")
	for _, tt := range []struct{ id, says string }{
		{"hog", "capacity admits usr=hog: its share, token-bucket 4/1m, has 4 left"}, // it has just begun
		{"hog", "capacity admits usr=hog: its share, token-bucket 1/30s burst 2, has 1 left"},
		{"hog", "capacity admits usr=hog: its share, token-bucket 1/30s burst 2, has 0 left, and the limit is not full, so it borrows"},
		{"quiet", "capacity admits usr=quiet: its share, token-bucket 1/30s burst 2, has 1 left"},
		{"hog", "capacity denies usr=hog for 30s: its share, token-bucket 1/30s burst 2, has 0 left, and the limit is full"},
		{"hog", "capacity denies usr=hog for 30s: its share, token-bucket 1/30s burst 2, has 0 left, and the limit is full"},
	} {
		id := tt.id
		all, err := c.Who(t.Context(), console.Subject{Key: "usr=" + id})
		if err != nil || len(all) != 1 || all[0].Key != "usr="+id {
			t.Fatalf("got %v, error %v", all, err)
		}
		if allowed := ask(id); (all[0].Verdict == console.Admitted) != allowed || all[0].Reason != console.ByShare {
			t.Errorf("%s: got %v, but the request: %v", id, all[0], allowed)
		}
		if got := all[0].Says; got != tt.says {
			t.Errorf("got  %s\nwant %s", got, tt.says)
		}
	}
	all, err := c.Who(t.Context(), console.Subject{Key: "usr=hog"})
	if err != nil || all[0].Denied == 0 || all[0].ClearsAfter <= 0 {
		t.Errorf("got %+v, error %v, want its denials and its wait", all, err)
	}

	// A limit that holds for everyone is divided, too.
	if err := table.Set(t.Context(), "capacity", ratelimit.Everyone, ratelimit.Override{Limit: algorithms.TokenBucket(40, time.Minute)}); err != nil {
		t.Fatal(err)
	}
	all, err = c.Who(t.Context(), console.Subject{Key: "usr=hog"})
	want := "capacity admits usr=hog: its share, token-bucket 1/3s burst 20, has 18 left"
	if err != nil || all[0].Says != want || !ask("hog") {
		t.Errorf("got %v, error %v, want %s", all, err, want)
	}
}
