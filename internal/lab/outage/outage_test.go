package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// scaled returns a shorter run. Delays and limits stay, because the limiters' own times do.
func (p plan) scaled(by time.Duration) plan {
	return plan{p.killed / by, p.started / by, p.healed / by, p.stalls / by, p.end / by, p.delay, p.stall}
}

// TestQuick: a short run writes the picture and the page. Penstock answers all requests.
func TestQuick(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := measure(t.Context(), full.scaled(20), dir); err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(filepath.Join(dir, "outage.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for decoder := xml.NewDecoder(strings.NewReader(string(svg))); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "RESULTS.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range contestants {
		if !strings.Contains(string(svg), ">"+c.name+"<") || strings.Count(string(page), "| "+c.name+" |") != len(full.parts()) || !strings.Contains(string(page), "### "+c.name+"\n") {
			t.Errorf("%s: it is missing in the picture, in the table, or among the programs", c.name)
		}
	}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	answers := []answer{
		{0, time.Millisecond, http.StatusOK},
		{1, 2 * time.Millisecond, http.StatusTooManyRequests},
		{2, 3 * time.Second, 0},
		{3, time.Millisecond, http.StatusInternalServerError},
		{time.Second, time.Millisecond, http.StatusOK}, // of the next part
	}
	got := in(answers, part{from: 0, to: time.Second})
	want := figures{sent: 4, admitted: 1, denied: 1, errors: 2, median: 2 * time.Millisecond, p99: 3 * time.Second, seconds: 1}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if all := perSecondOf(answers, 2*time.Second); len(all) != 2 || all[1].admitted != 1 {
		t.Errorf("got %+v, want two seconds", all)
	}
}

// TestStory: in the recording on the page of the example, two instances admit their shares without Redis, and count together again.
func TestStory(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../examples/chi-server/playground/assets/redis-dies.json")
	if err != nil {
		t.Fatal(err)
	}
	var r recording
	if err := json.Unmarshal(text, &r); err != nil || len(r.Instances) != 2 {
		t.Fatalf("got %d instances, error %v", len(r.Instances), err)
	}
	rate := storyLimit.Requests() * 1000 / storyLimit.Window().Milliseconds()
	admitted := make(map[bool]int64)
	for _, requests := range r.Instances {
		for _, request := range requests {
			if request[1] == 1 {
				admitted[int64(request[0]) >= r.Down && int64(request[0]) < r.Up]++
			}
		}
	}
	if most := r.Burst + rate*(r.Up-r.Down)/1000; admitted[true] > most || admitted[true] == 0 {
		t.Errorf("got %d requests admitted without Redis, want %d at most", admitted[true], most)
	}
	if r.Shared <= r.Up || r.Shared > r.Up+5_000 {
		t.Errorf("got %d ms after the restart until both count together, want 5 s at most", r.Shared-r.Up)
	}
}
