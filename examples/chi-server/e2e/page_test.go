package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

type action = chromedp.Action[chromedp.Void]

// command is a command of the protocol whose answer does not matter.
func command[P, R any](c cdp.Command[P, R], params P) action {
	return func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, c, params)
		return chromedp.Void{}, err
	}
}

// A page is a tab of the browser.
type page struct {
	ctx context.Context

	mu        sync.Mutex
	complaint []string // errors of scripts, of the console, and of requests
	isAlone   bool     // the server has ended, so requests fail
}

// Widths of screens.
const (
	desktop = 1440
	laptop  = 1280
	phone   = 390
	narrow  = 320 // the minimum of WCAG 2.2 (1.4.10)
)

// open opens a path of the server in a tab of a width, and waits until its scripts have run. Errors of scripts and of the
// content security policy fail the test. The console also logs answers such as 429, which the test examines.
func open(t *testing.T, s *server, path string, width int64, setup ...action) *page {
	t.Helper()
	tab, closeTab := chromedp.NewContext(browser)
	p := &page{}
	if err := chromedp.Listen(tab, p.hear); err != nil {
		closeTab()
		t.Fatal(err)
	}
	p.ctx = tab
	if end, ok := t.Deadline(); ok { // a browser that hangs fails this test by its name, before go test ends all tests
		var cancel context.CancelFunc
		p.ctx, cancel = context.WithDeadline(tab, end.Add(-5*time.Second))
		t.Cleanup(cancel)
	}
	t.Cleanup(func() {
		closeTab()
		for _, said := range p.complaints() {
			if !strings.HasPrefix(said, "answer ") {
				t.Errorf("the page says: %s", said)
			}
		}
	})
	p.do(t, "the log", command(log.Enable, cdp.Empty{}))
	p.do(t, "the network", command(network.Enable, network.EnableParams{}))
	p.do(t, "the window", command(emulation.SetDeviceMetricsOverride,
		emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 900, DeviceScaleFactor: 1, Mobile: width == phone}))
	p.do(t, "little motion, which is less work for a busy machine", media("light", "reduce"))
	p.do(t, "its settings", setup...)
	p.do(t, path, chromedp.Navigate(s.url+path))
	return p
}

// openFirst opens the page that sends requests, and waits until it has played a burst by itself.
func openFirst(t *testing.T, s *server, width int64, setup ...action) *page {
	t.Helper()
	p := open(t, s, s.home, width, setup...)
	p.until(t, ready)
	return p
}

// openDemo opens the same page, and chooses the first route of the API.
func openDemo(t *testing.T, s *server, width int64, setup ...action) *page {
	t.Helper()
	p := openFirst(t, s, width, setup...)
	p.set(t, "target", "0")
	return p
}

func (p *page) hear(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.complain("exception: " + e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			p.complain(fmt.Sprintf("console: %s", e.Args[0].Value))
		}
	case *log.EventEntryAdded:
		if e.Entry.Source != log.EntrySourceNetwork { // network errors are reported below
			p.complain(fmt.Sprintf("%s: %s", e.Entry.Source, e.Entry.Text))
		}
	case *network.EventResponseReceived:
		if e.Response.Status >= 400 {
			p.complain(fmt.Sprintf("answer %d: %s", e.Response.Status, e.Response.URL))
		}
	case *network.EventLoadingFailed:
		if !e.Canceled && e.ErrorText != "" { // without scripts, the browser drops preloaded modules, and gives no reason
			p.complain("request: " + e.ErrorText)
		}
	}
}

func (p *page) complain(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isAlone || !strings.HasPrefix(what, "request: ") {
		p.complaint = append(p.complaint, what)
	}
}

// alone announces that the test stops the server, so requests fail.
func (p *page) alone() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isAlone = true
}

// complaints returns the errors so far.
func (p *page) complaints() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.complaint...)
}

func (p *page) do(t *testing.T, what string, actions ...action) {
	t.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// eval returns the value of an expression.
func eval[T any](t *testing.T, p *page, expression string) T {
	t.Helper()
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// text returns the text of the element with an id.
func (p *page) text(t *testing.T, id string) string {
	t.Helper()
	return eval[string](t, p, fmt.Sprintf("document.getElementById(%q).textContent", id))
}

// until waits until an expression is true. It bounds the number of looks and not the time: on a busy machine, each look at
// the page takes longer, as the page itself does.
func (p *page) until(t *testing.T, condition string) {
	t.Helper()
	for range looks {
		if eval[bool](t, p, "Boolean("+condition+")") {
			return
		}
		time.Sleep(pause)
	}
	t.Fatalf("looked %d times for %s; the page says\n%s", looks, condition, eval[string](t, p, "document.body.innerText"))
}

// set sets the value of a field, as a visitor does who leaves the field then.
func (p *page) set(t *testing.T, id, value string) {
	t.Helper()
	const script = `(() => { const f = document.getElementById(%q); f.value = %q; f.dispatchEvent(new Event("change", { bubbles: true })); return f.value })()`
	if got := eval[string](t, p, fmt.Sprintf(script, id, value)); got != value {
		t.Fatalf("%s: got %q, want %q", id, got, value)
	}
}

func (p *page) click(t *testing.T, id string) {
	t.Helper()
	p.do(t, "click "+id, chromedp.Click("#"+id))
}

// send presses a button that sends requests, and waits until each request has its answer.
func (p *page) send(t *testing.T, button string) {
	t.Helper()
	p.click(t, button)
	p.until(t, sent)
}

// picture writes a picture of the whole page to the folder of go test -artifacts.
func (p *page) picture(t *testing.T, name string) {
	t.Helper()
	png, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(t.ArtifactDir(), name+".png"), png, 0o600); err != nil {
		t.Error(err)
	}
}

// screen writes a picture of what the window shows.
func (p *page) screen(t *testing.T, name string) {
	t.Helper()
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(t.ArtifactDir(), name+".png"), png, 0o600); err != nil {
		t.Error(err)
	}
}

// number returns the number that an element shows.
func (p *page) number(t *testing.T, id string) int {
	t.Helper()
	n, err := strconv.Atoi(p.text(t, id))
	if err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	return n
}

// answers returns the number of answers with a status and URL, such as "429: http://…".
func (p *page) answers(what string) int {
	n := 0
	for _, said := range p.complaints() {
		if said == "answer "+what {
			n++
		}
	}
	return n
}
