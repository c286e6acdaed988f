package playground

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/examples/chi-server/playground/instruments"
)

// TestTab: a tab answers as this server does: the same status, body, and names of fields. TestFields of package
// instruments compares the values.
func TestTab(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	tab := instruments.NewTab(nil)
	var made struct{ ID string }
	limit := `{"limit":"sliding-window-log 2/1m"}`
	if err := json.Unmarshal([]byte(tab.Answer("POST", "/demo/sandboxes", limit).Body), &made); err != nil {
		t.Fatal(err)
	}
	own, theirs := s.sandbox(t, "sliding-window-log 2/1m"), "/demo/sandboxes/"+made.ID
	for _, tt := range [][3]string{
		{"POST", "/requests", ""}, {"POST", "/requests?cost=2", ""}, {"POST", "/requests", ""}, {"POST", "/requests?cost=3", ""}, {"POST", "/requests", ""},
		{"POST", "/limit", limit}, {"POST", "/limit", `{"limit":"words"}`}, {"POST", "/limit", `{"limit":"1/2m"}`}, {"POST", "/limit", "words"},
		{"GET", "compare?at=0,0,1500&limit=2/1m&limit=fixed-window+1/1s", ""}, {"GET", "compare?at=0", ""}, {"GET", "compare?at=0&limit=words", ""},
	} {
		path, twin := own+tt[1], theirs+tt[1]
		if !strings.HasPrefix(tt[1], "/") {
			path, twin = "/demo/"+tt[1], "/demo/"+tt[1]
		}
		status, header, body := s.send(t, tt[0]+" "+path, tt[2])
		delete(header, "Date")
		delete(header, "Content-Length")
		got := tab.Answer(tt[0], twin, tt[2])
		if got.Status != status || got.Body != strings.TrimSpace(body) {
			t.Errorf("%s: got %d %s, want the server's %d %s", tt[1], got.Status, got.Body, status, body)
		}
		var names, want []string
		for _, f := range got.Fields {
			names = append(names, strings.ToLower(f[0]))
		}
		for name := range header {
			want = append(want, strings.ToLower(name))
		}
		slices.Sort(names)
		slices.Sort(want)
		if !slices.Equal(names, want) {
			t.Errorf("%s: got the fields %q, want the server's %q", tt[1], names, want)
		}
	}
}
