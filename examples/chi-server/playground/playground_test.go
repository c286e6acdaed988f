// Helpers of the tests, and tests of the page's routes.

package playground

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"
)

const deadline = time.Minute // for what takes a healthy machine less than a second

func TestMain(m *testing.M) {
	logging.Disable()
	goleak.VerifyTestMain(m)
}

// A site is a server with the page alone.
type site struct {
	*Page
	url    string
	client *http.Client
}

func start(t *testing.T, o Options) *site {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	r := chi.NewRouter()
	r.Use(middleware.GetHead)
	p.Mount(r, func(next http.Handler) http.Handler { return next })
	server := httptest.NewServer(r)
	s := &site{p, server.URL, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		p.Release()
		s.client.CloseIdleConnections()
		server.Close()
		if err := p.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

// send sends a request such as "GET /". fields are names and values in turn.
func (s *site) send(t *testing.T, line, body string, fields ...string) (status int, header http.Header, content string) {
	t.Helper()
	method, path, _ := strings.Cut(line, " ")
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	response, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(read)
}

// sandbox makes a sandbox and returns its path.
func (s *site) sandbox(t *testing.T, limit string, fields ...string) string {
	t.Helper()
	status, _, body := s.send(t, "POST /demo/sandboxes", fmt.Sprintf(`{"limit":%q}`, limit), fields...)
	var made struct{ ID, Limit string }
	if err := json.Unmarshal([]byte(body), &made); status != http.StatusCreated || err != nil || made.ID == "" {
		t.Fatalf("%s: got %d %s and %v, want a sandbox", limit, status, body, err)
	}
	return "/demo/sandboxes/" + made.ID
}

func TestListRoutes(t *testing.T) {
	t.Parallel()
	status, _, body := start(t, Options{}).send(t, "GET /demo/routes", "")
	var got struct {
		Redis  *bool
		Routes []Route
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil || status != http.StatusOK {
		t.Fatalf("got %d and %v, want the routes", status, err)
	}
	if got.Redis == nil || *got.Redis || !slices.Equal(got.Routes, Routes) {
		t.Errorf("got %s, want no Redis, and %v", body, Routes)
	}
}

// TestOtherSites: another site cannot use a visitor's browser to change anything.
func TestOtherSites(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	box := s.sandbox(t, "10/10s")
	for _, line := range []string{"POST /demo/sandboxes", "POST " + box + "/limit", "POST " + box + "/requests"} {
		if status, _, _ := s.send(t, line, `{"limit":"1/1s"}`, "Sec-Fetch-Site", "cross-site"); status != http.StatusForbidden {
			t.Errorf("%s: got %d, want 403", line, status)
		}
	}
}
