// Clock steps. A program whose time.Now can be stepped asks the limiter, and steps the clock of its redis-server, too.
// The Go command builds the program with a time.go of ours, in which Now adds the step to the wall clock. The monotonic
// clock goes on, as it does when an operator or NTP sets a clock.

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/penstock-go/penstock/internal/lab/nottest"
)

// steppable builds this program so that time.SetStep steps the clock, once.
var steppable = sync.OnceValues(func() (program string, err error) {
	err = nottest.Run(func(o *nottest.Owner) { program = buildSteppable(o) })
	return program, err
})

func buildSteppable(o *nottest.Owner) string {
	dir := filepath.Join(nottest.Must(os.UserCacheDir()), "penstock-peers") // the same for every run, so that the Go command caches what it builds
	nottest.Check(os.MkdirAll(dir, 0o755))
	root := nottest.Must(exec.Command("go", "env", "GOROOT").Output())
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	text := nottest.Must(os.ReadFile(original))
	const now = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	stepped := bytes.Replace(text, []byte(now), []byte("var step int64\n\n// SetStep steps the wall clock.\nfunc SetStep(seconds int64) { step = seconds }\n\n"+now+"\tsec += step\n"), 1)
	if bytes.Equal(text, stepped) {
		o.Fatalf("time.Now of this Go reads its clock in another way")
	}
	replaced := filepath.Join(dir, "time.go")
	overlay := filepath.Join(dir, "overlay.json")
	nottest.Check(os.WriteFile(replaced, stepped, 0o644))
	nottest.Check(os.WriteFile(overlay, nottest.Must(json.Marshal(map[string]map[string]string{"Replace": {original: replaced}})), 0o644))
	built := filepath.Join(dir, "peers")
	build := exec.Command("go", "build", "-tags", "steps", "-overlay", overlay, "-o", built, "github.com/penstock-go/penstock/internal/lab/peers")
	if out, err := build.CombinedOutput(); err != nil {
		o.Fatalf("go build: %v: %s", err, out)
	}
	return built
}

// clock runs in the program with the steppable clock.
func clock(t *trial) verdict {
	stepServer := t.stepRedis()
	const hour = 3600
	q := quota{10, 4 * time.Second}
	l := t.open(q)
	for _, scene := range []struct {
		name       string
		used, then int64
	}{{"the clocks stepped back an hour", 0, -hour}, {"clocks an hour ahead were set right", hour, 0}} {
		set := func(seconds int64) {
			setStep(seconds)
			stepServer(seconds)
		}
		set(scene.used)
		l.admitted(scene.name, q.requests+1)
		set(scene.then)
		admitted, first := 0, time.Duration(0)
		begin := time.Now()
		for i := range 95 {
			sleep(begin, time.Duration(i)*100*time.Millisecond)
			if l.ask(scene.name, 1).allowed {
				if admitted++; admitted == 1 {
					first = time.Since(begin)
				}
			}
		}
		if admitted == 0 || first > 2*q.window+500*time.Millisecond {
			return broken("after %s, the client was locked out for more than %.0f s", scene.name, (2 * q.window).Seconds())
		}
		if admitted > 44 {
			return broken("after %s, %d of 95 requests were admitted in 9.5 s at a limit of 10 per 4 s", scene.name, admitted)
		}
	}
	return kept("the client is admitted again after both steps")
}
