// The test of make observe.

package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/redistest"
)

// TestObserve: one command starts the example, and a Prometheus that scrapes it and has our rules. Ctrl-C ends all.
func TestObserve(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	program(t, "prometheus")
	api, redis, prometheus := freeAddr(t), freeAddr(t), freeAddr(t)
	log := new(text)
	cmd := exec.CommandContext(t.Context(), filepath.Join(observability, "observe"), os.Args[0])
	cmd.Env = append(os.Environ(), asProgram+"=1", "OBSERVE_API="+api, "OBSERVE_REDIS="+redis, "OBSERVE_PROMETHEUS="+prometheus, "OBSERVE_GRAFANA="+freeAddr(t))
	cmd.Stderr = log
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var err error
	ended := make(chan struct{})
	go func() { err = cmd.Wait(); close(ended) }()
	t.Cleanup(func() { <-ended }) // t.Context has ended
	p := &scraper{url: "http://" + prometheus, client: &http.Client{Transport: &http.Transport{}}, log: log}
	defer p.client.CloseIdleConnections()
	p.until(t, func() (missing string) {
		select {
		case <-ended:
			t.Fatalf("got the end %v, want all to run", err)
		default:
		}
		if missing := p.unready(); missing != "" {
			return missing
		}
		if up := p.value(t, fmt.Sprintf("up{instance=%q}", api)); up != "1" {
			return fmt.Sprintf("a scrape of the example, but %q", up)
		}
		return ""
	})
	var rules struct {
		Data struct{ Groups []struct{ Name string } }
	}
	if p.get(t, "/api/v1/rules", &rules); len(rules.Data.Groups) != 2 {
		t.Errorf("got %v, want the recording rules and the alerts", rules)
	}
	for _, want := range []string{"http://" + api, "http://" + prometheus + "/alerts", "Grafana "} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("got no %q in\n%s", want, log)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if <-ended; err != nil {
		t.Errorf("got %v after Ctrl-C, want the exit code 0\n%s", err, log)
	}
	for _, addr := range []string{api, redis, prometheus} {
		if listens(addr) {
			t.Errorf("%s still listens after Ctrl-C", addr)
		}
	}
}

func listens(addr string) bool {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// TestObserveFails: if a process of make observe ends, so do the others, and the user learns which one it was.
func TestObserveFails(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t) // has the address
	log := new(text)
	cmd := exec.CommandContext(t.Context(), filepath.Join(observability, "observe"), "sleep")
	cmd.Env = append(os.Environ(), "OBSERVE_REDIS="+redis.Addr(), "OBSERVE_PROMETHEUS="+freeAddr(t), "OBSERVE_GRAFANA="+freeAddr(t))
	cmd.Stderr = log
	if err := cmd.Run(); err == nil || !strings.Contains(log.String(), "has ended\n") {
		t.Errorf("got %v, want exit code 1 and the program that has ended:\n%s", err, log)
	}
}
