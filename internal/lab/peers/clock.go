// Clock steps. A program whose time.Now can be stepped asks the limiter, and steps the clock of its redis-server, too.
// The Go command builds the program with a time.go of ours, in which Now adds the step to the wall clock. The monotonic
// clock goes on, as it does when an operator or NTP sets a clock.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// clock: A client uses all of 10 per 4 s. Then the clocks of the program and of redis-server step back an hour. Within 8.5 s the
// client is admitted again, and in 9.5 s at most 44 times. The same holds after the clocks were an hour ahead, the
// client used its limit there, and they were set right.
func clock(t *trial) (verdict, error) {
	program, err := steppable()
	if err != nil {
		return verdict{}, err
	}
	ctx, cancel := context.WithTimeout(t.ctx(), 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, program, "-steps", t.library.name, t.library.store)
	var out, trouble bytes.Buffer
	c.Stdout, c.Stderr = &out, &trouble
	if err := c.Run(); err != nil {
		return verdict{}, fmt.Errorf("-steps: %w: %s", err, trouble.Bytes())
	}
	var v struct{ Colour, What string }
	err = json.Unmarshal(out.Bytes(), &v)
	return verdict{colour(v.Colour), v.What}, err
}

// steppable builds this program with a steppable clock, once.
var steppable = sync.OnceValues(func() (string, error) { return buildSteppable("github.com/penstock-go/penstock/internal/lab/peers") })

// buildSteppable builds a program in which time.SetStep steps the clock.
func buildSteppable(program string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "penstock-peers") // the same for every run, so that the Go command caches what it builds
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	text, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	const reads = "sec, nsec, mono := runtimeNow()\n"
	if bytes.Count(text, []byte("func Now() Time {\n\t"+reads)) != 1 {
		return "", errors.New("time.Now of this Go reads its clock in another way")
	}
	text = bytes.Replace(text, []byte("func Now() Time {\n\t"+reads), []byte(
		"var step int64\n\n// SetStep steps the wall clock.\nfunc SetStep(seconds int64) { step = seconds }\n\nfunc Now() Time {\n\t"+reads+"\tsec += step\n"), 1)
	replaced := filepath.Join(dir, "time.go")
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: replaced}})
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.WriteFile(replaced, text, 0o644), os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o644)); err != nil {
		return "", err
	}
	built := filepath.Join(dir, filepath.Base(program))
	build := exec.Command("go", "build", "-tags", "steps", "-overlay", filepath.Join(dir, "overlay.json"), "-o", built, program)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %v: %s", err, out)
	}
	return built, nil
}

// steps is what the program with the steppable clock does. It prints the verdict.
func steps(t *trial) error {
	stepServer, err := stepRedis(t)
	if err != nil {
		return err
	}
	v, err := underSteps(t, func(seconds int64) error {
		setStep(seconds)
		return stepServer(seconds)
	})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]string{"Colour": string(v.colour), "What": v.what})
}

func underSteps(t *trial, set func(seconds int64) error) (verdict, error) {
	const hour = 3600
	q := quota{10, 4 * time.Second}
	l, err := t.open(q)
	if err != nil {
		return verdict{}, err
	}
	for _, scene := range []struct {
		name       string
		used, then int64
	}{{"the clocks stepped back an hour", 0, -hour}, {"clocks an hour ahead were set right", hour, 0}} {
		if err := set(scene.used); err != nil {
			return verdict{}, err
		}
		for range q.requests + 1 {
			if _, err := l.take(scene.name); err != nil {
				return verdict{}, err
			}
		}
		if err := set(scene.then); err != nil {
			return verdict{}, err
		}
		admitted, first := 0, time.Duration(0)
		begin := time.Now()
		for i := range 95 {
			sleep(begin, time.Duration(i)*100*time.Millisecond)
			a, err := l.take(scene.name)
			if err != nil {
				return verdict{}, err
			}
			if a.allowed {
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
