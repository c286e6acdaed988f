package migrate

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/penstock-go/penstock/algorithms/shared"
	"github.com/penstock-go/penstock/internal/redistest"
)

func TestMain(m *testing.M) {
	logging.Disable() // go-redis would log each dial of a dead server
	m.Run()
}

// A row is a row of a table in COMING_FROM.md: one difference, in the fields that show it. The table has the first.
type row struct {
	says   string   // "" for a difference that another row says, or for fields that a trace in real time does not compare
	shown  string   // by what
	fields []string // names of header fields, "status" or "body"; a different status explains all fields
}

// A step sends equal requests to both handlers. All answers must be equal, except in the fields of its rows.
type step struct {
	before func() // a pause, or the end of Redis
	send   int    // how many requests; 0 means one
	from   string // the client's address
	path   string
	header http.Header
	rows   []row // shown by the last answer
}

// An answer is the text of each header field, the body, and the status.
type answer map[string]string

func (s step) answerOf(h http.Handler) (a answer) {
	defer func() {
		if recover() != nil {
			a = answer{"status": "closed connection"} // net/http closes it after a panic
		}
	}()
	path, from := s.path, s.from
	if path == "" {
		path = "/orders/1"
	}
	if from == "" {
		from = "192.0.2.1:1234"
	}
	r, w := httptest.NewRequest("GET", path, nil), httptest.NewRecorder()
	r.RemoteAddr, r.Header = from, maps.Clone(s.header)
	if r.Header == nil {
		r.Header = make(http.Header)
	}
	h.ServeHTTP(w, r)
	a = answer{"status": fmt.Sprint(w.Code), "body": w.Body.String()}
	for name, values := range w.Header() {
		a[name] = strings.Join(values, ", ")
	}
	return a
}

// compare sends the trace to both handlers, and returns the rows of the table. The rows of always hold in every step.
func compare(t *testing.T, before, after http.Handler, always []row, trace []step) (lines []string) {
	t.Helper()
	shown := make([]string, len(always)) // by their first difference
	for i, s := range trace {
		if s.before != nil {
			s.before()
		}
		var a, b answer
		for range max(s.send, 1) {
			a, b = s.answerOf(before), s.answerOf(after)
			for _, field := range differing(a, b) {
				if !explains(slices.Concat(always, s.rows), field) {
					t.Errorf("step %d: %s: got %q before and %q after, and no row says so\n%v\n%v", i, field, a[field], b[field], a, b)
				}
			}
			for j, r := range always {
				if line := r.line(a, b); shown[j] == "" {
					shown[j] = line
				}
			}
		}
		for _, r := range s.rows {
			line := r.line(a, b)
			if line == "" {
				t.Errorf("step %d: %q: %s is %q in both", i, r.says, r.fields[0], a[r.fields[0]])
			}
			if r.says != "" {
				lines = append(lines, line)
			}
		}
	}
	for j, line := range shown {
		switch {
		case always[j].says == "":
			shown[j] = ""
		case line == "":
			t.Errorf("no answer shows that %q", always[j].says)
		}
	}
	return append(shown, lines...)
}

// line returns the row of the table; "" if the answers do not show the difference.
func (r row) line(a, b answer) string {
	field := r.fields[0]
	if a[field] == b[field] {
		return ""
	}
	return fmt.Sprintf("| %s | %s | %s | %s |\n", r.says, r.shown, a.cell(field), b.cell(field))
}

// cell returns what the table shows of a field. An instant is shown as seconds from now.
func (a answer) cell(field string) string {
	value, ok := a[field]
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil && seconds > 1e8 {
		value = fmt.Sprint("now + ", seconds-time.Now().Unix())
	}
	switch {
	case !ok:
		return "–"
	case field == "status":
		return value
	}
	return "`" + value + "`"
}

func differing(a, b answer) (fields []string) {
	if a["status"] != b["status"] {
		return []string{"status"}
	}
	for field := range a {
		if value, ok := b[field]; !ok || value != a[field] {
			fields = append(fields, field)
		}
	}
	for field := range b {
		if _, ok := a[field]; !ok {
			fields = append(fields, field)
		}
	}
	return fields
}

func explains(rows []row, field string) bool {
	return slices.ContainsFunc(rows, func(r row) bool { return slices.Contains(r.fields, field) })
}

// wantTable reports an error unless COMING_FROM.md has the table in the section of the library.
func wantTable(t *testing.T, library string, lines []string) {
	t.Helper()
	document, err := os.ReadFile("../../../COMING_FROM.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(document), "\n## "+library+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	table := "| difference | shown by | " + library + " | penstock |\n|---|---|---|---|\n" + strings.Join(lines, "") + "\n"
	if !strings.Contains(section, table) {
		t.Errorf("COMING_FROM.md does not have this table in the section %s:\n%s", library, table)
	}
}

func pause(d time.Duration) func() { return func() { time.Sleep(d) } }

// quiet returns when the window that follows the clock does not turn within ten seconds.
func quiet(t *testing.T, window time.Duration) {
	t.Helper()
	redistest.Until(t, "the window has ten seconds left", func() bool { return time.Until(time.Now().Truncate(window).Add(window)) > 10*time.Second })
}

// newShared returns a limiter that counts on the server. A busy machine is no outage.
func newShared(t *testing.T, rdb shared.Client, denials int) *shared.Limiter {
	t.Helper()
	limiter, err := shared.New(rdb, &shared.Options{Deadline: 10 * time.Second, Views: denials, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = limiter.Close() })
	return limiter
}

var order = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("an order\n")) })

// denied is a row of each library whose denials are plain text.
var denied = row{
	"penstock answers denials with JSON (RFC 9457), and no cache stores them", "`Content-Type` of a denial",
	[]string{"Content-Type", "body", "Cache-Control", "X-Content-Type-Options"},
}
