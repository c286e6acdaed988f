package statuspage_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/keyfunc"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/statuspage"
)

type tenantContext struct{}

// TestShares: the page shows the shares in force, how many requests borrowed, and which tenants were denied beyond their shares.
func TestShares(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	page := statuspage.New(nil)
	m := shownOn(t, page, algorithms.NewMemory(&algorithms.MemoryOptions{Now: func() time.Time { return at }}), ratelimit.Options{PlainKeys: true}, ratelimit.Policy{
		Name: "capacity", Key: keyfunc.Const("all"), Capacity: true, Limit: algorithms.TokenBucket(8, time.Hour),
		ShareBy: keyfunc.User(func(ctx context.Context) (keyfunc.Identity, bool) {
			id, ok := ctx.Value(tenantContext{}).(string)
			return keyfunc.Identity{ID: id}, ok
		}),
	})
	for _, id := range strings.Fields("quiet hog hog hog hog hog hog hog hog hog quiet") {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if _, err := m.Check(r.WithContext(context.WithValue(t.Context(), tenantContext{}, id))); err != nil {
			t.Fatal(err)
		}
	}
	// Of 8 units, the quiet tenant has one and the hog seven, of which three are beyond its share. A second of the quiet tenant is in the reserve.
	v := look(t, page)
	p := v.Policies[0]
	if p.Tenants != 2 || p.Share != "token-bucket 1/15m burst 4" || p.Outcomes["borrowed"] != 3 || p.Outcomes["denied"] != 2 || p.Outcomes["allowed"] != 6 {
		t.Errorf("got %+v", p)
	}
	if len(v.Clients) != 1 || v.Clients[0].Denied != 2 {
		t.Errorf("got the clients %+v, want the hog", v.Clients)
	}
	w := record(page, httptest.NewRequest(http.MethodGet, "/", nil))
	for _, want := range []string{"shared by 2 present tenants", "share of weight 1:", "1/15m", "borrowed 3"} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("got no %q on the page", want)
		}
	}
}
