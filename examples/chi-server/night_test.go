//go:build unix

// The night shift: pairs of instances with one fault each, under load, beside a Prometheus with our rules.

package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// faster divides every duration of the rules, the interval of scrapes, and the two minutes. The expressions stay.
const faster = 5

// If processes wait for the CPU in this part of the time, this machine has a fault of its own.
const busy = 0.5

// A fault is one cause of a bad night.
type fault struct {
	name   string
	begin  func(t *testing.T, n *night)
	deploy [2]string     // a text of limits.go, and what begin deploys in its place
	own    time.Duration // the process needs it to notice the fault, and no rule shortens it
	alert  string        // fires for it
	also   []string      // may fire, too
	says   string        // in the alert's text: the cause, or what shows it
	cause  string        // in the output of the first two commands of the alert's section in RUNBOOK
}

// TestNight: each fault has its alert within two minutes of the alert's own "for". The alert's text and at most two pasted
// commands name the cause. Calm and greedy load fire no alert.
func TestNight(t *testing.T) {
	if os.Getenv("PENSTOCK_NIGHT") == "" {
		t.Skip("takes a quarter of an hour: run make night")
	}
	r, program := new(rows), build(t, "", "")
	t.Run("pairs", func(t *testing.T) {
		for _, load := range []string{"calm", "greedy"} {
			t.Run(load, func(t *testing.T) { t.Parallel(); quiet(t, newNight(t, program), load, r) })
		}
		for _, f := range faults {
			changed := build(t, f.deploy[0], f.deploy[1]) // before any load
			t.Run(f.name, func(t *testing.T) { t.Parallel(); f.run(t, newNight(t, program), changed, r) })
		}
	})
	t.Logf("each duration is divided by %d\n%s", faster, r)
}

// TestOneFault is a short night.
func TestOneFault(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	r := new(rows)
	faults[0].run(t, newNight(t, build(t, "", "")), "", r)
	t.Log(r)
}

// quiet wants no alert in an hour.
func quiet(t *testing.T, n *night, load string, r *rows) {
	t.Helper()
	n.work(t)
	if load == "greedy" {
		n.greed(t)
	}
	time.Sleep(time.Hour / faster)
	r.add("%s\t%s\tin an hour, %d requests\t-\t-", load, n.unexpected(t), n.sent.Load())
}

// run begins the fault after a while without one, and judges the first alert for it.
func (f fault) run(t *testing.T, n *night, changed string, r *rows) {
	t.Helper()
	n.changed = changed
	n.work(t)
	time.Sleep(2 * time.Minute / faster)
	n.unexpected(t)
	f.begin(t, n)
	began := time.Now()
	waits := waitOf(t, strings.Fields(f.alert)[0])/faster + f.own
	latest := began.Add(waits + 2*time.Minute/faster + 5*time.Second) // for this test's own looks
	var a alert
	for ; a.Labels == nil; time.Sleep(time.Second) {
		if time.Now().After(latest.Add(redistest.Patience)) {
			t.Errorf("got %v, want %s", n.p.fired(t), f.alert)
			r.add("%s\tnone: %v\t-\t-\t-", f.name, n.p.fired(t))
			return
		}
		a = n.p.firing(t, f.alert)
	}
	took := "after " + time.Since(began).Round(time.Second).String()
	if a.ActiveAt.Before(began) {
		took = "pending before the fault"
	}
	if (a.ActiveAt.Before(began) || time.Now().After(latest)) && n.waiting() < busy {
		t.Errorf("%s: got it %s, want it within two minutes after %v", f.alert, took, waits)
	}
	text := a.Annotations["summary"] + " " + a.Annotations["description"]
	if !regexp.MustCompile(f.says).MatchString(text) {
		t.Errorf("%s: got %q, want %q", f.alert, text, f.says)
	}
	commands, line := n.investigate(t, a, f.cause)
	if commands == 0 {
		t.Errorf("%s: the first two commands do not show %q", f.alert, f.cause)
	}
	others := n.unexpected(t, slices.Concat(f.also, []string{f.alert})...)
	r.add("%s\t%s; others: %s\tfor %v, own %v, %s\t%d\t%s", f.name, f.alert, others, waits-f.own, f.own, took, commands, line)
}

// unexpected wants no alert to have fired except these. It returns the others. Where this machine lacks CPU, alerts that say
// so are right.
func (n *night) unexpected(t *testing.T, may ...string) string {
	t.Helper()
	var others []string
	for alert := range n.p.fired(t) {
		switch {
		case slices.Contains(may, alert):
			continue
		case n.waiting() < busy || !slices.Contains(slices.Concat(degraded, failedClosed, flaps, undecided), alert):
			t.Errorf("got %s, want it silent", alert)
		}
		others = append(others, alert)
	}
	slices.Sort(others)
	if len(others) == 0 {
		return "none"
	}
	return fmt.Sprintf("%s (processes waited for the CPU in %.0f %% of the time)", strings.Join(others, ", "), 100*n.waiting())
}

// investigate pastes the first two commands of the alert's section. It returns how many commands show the cause, and the
// line that does; 0 if none does.
func (n *night) investigate(t *testing.T, a alert, cause string) (commands int, line string) {
	t.Helper()
	_, anchor, _ := strings.Cut(a.Annotations["runbook_url"], "#")
	n.fill = n.placeholders(a)
	for i, command := range commandsOf(t, anchor)[:2] {
		output, _ := n.run(t, command)
		t.Logf("$ %s\n%s", command, output)
		if line := regexp.MustCompile("(?m)^.*(?:" + cause + ").{0,60}").FindString(output); line != "" {
			return i + 1, strings.TrimSpace(line)
		}
	}
	return 0, ""
}

// waitOf returns the "for" of an alert.
func waitOf(t *testing.T, alert string) time.Duration {
	t.Helper()
	_, rule, _ := strings.Cut(read(t, "alerts.yml"), "- alert: "+alert+"\n")
	rule, _, _ = strings.Cut(rule, "- alert: ")
	wait := regexp.MustCompile(`\n +for: (\w+)\n`).FindStringSubmatch(rule)
	if wait == nil {
		return 0
	}
	d, err := time.ParseDuration(wait[1])
	if err != nil {
		t.Fatal(err)
	}
	return d
}

var (
	minutes     = regexp.MustCompile(`(for: |offset |\[)(\d+)m`)
	fiveMinutes = regexp.MustCompile(`([</] )300\b`)
)

// shortened returns rules whose durations are divided.
func shortened(rules string) string {
	rules = minutes.ReplaceAllStringFunc(rules, func(found string) string {
		part := minutes.FindStringSubmatch(found)
		n, _ := strconv.Atoi(part[2]) // of digits
		return fmt.Sprintf("%s%ds", part[1], n*60/faster)
	})
	return fiveMinutes.ReplaceAllString(rules, fmt.Sprintf("${1}%d", 300/faster))
}

func TestShortened(t *testing.T) {
	t.Parallel()
	got := shortened("for: 1m\nkeep_firing_for: 5m\n(a[2m] offset 5m < 300) / 300 > 100")
	if want := "for: 12s\nkeep_firing_for: 60s\n(a[24s] offset 60s < 60) / 60 > 100"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// rows is a table with a row for each pair.
type rows struct {
	mu  sync.Mutex
	all []string
}

func (r *rows) add(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, "| "+strings.ReplaceAll(fmt.Sprintf(format, args...), "\t", " | ")+" |")
}

func (r *rows) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return "| fault | alert | when | commands | what they show |\n|---|---|---|---|---|\n" + strings.Join(r.all, "\n")
}
