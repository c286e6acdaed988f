// What is a valid override.

package overrides_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/overrides"
)

func TestValidate(t *testing.T) {
	soon, past := time.Now().Add(time.Hour), time.Now().Add(-time.Second)
	limited, ban := overrides.Override{Limit: hourly}, overrides.Override{Mode: overrides.Banned}
	for _, tt := range []struct {
		name        string
		policy, key string
		override    overrides.Override
		want        []string // in the error; none: it is valid
	}{
		{"limit", "p", "usr=1", limited, nil},
		{"limit for a time", "p", "usr=1", overrides.Override{Limit: hourly, Until: soon}, nil},
		{"limit in shadow", "p", "usr=1", overrides.Override{Limit: hourly, Mode: overrides.Shadow}, nil},
		{"nothing", "p", "usr=1", overrides.Override{}, nil},
		{"ban", "p", "usr=1", ban, nil},
		{"everyone", "p", "*", limited, nil},
		{"all policies", "*", "*", overrides.Override{Mode: overrides.Off}, nil},
		{"bad policy", "a b", "usr=1", limited, []string{`"a b" is not a letter`}},
		{"candidate's policy", "p~candidate", "usr=1", limited, []string{"is not a letter"}},
		{"a key of all policies", "*", "usr=1", ban, []string{"only key"}},
		{"a limit of all policies", "*", "*", limited, []string{"no limit is that of all"}},
		{"no key", "p", "", limited, []string{"the key has 0 bytes"}},
		{"long key", "p", strings.Repeat("a", 1025), limited, []string{"the key has 1025 bytes"}},
		{"bad limit", "p", "usr=1", overrides.Override{Limit: algorithms.TokenBucket(0, time.Second)}, []string{"0/1s: requests must be", "0/1s: the burst must be"}},
		{"no such mode", "p", "usr=1", overrides.Override{Mode: 9}, []string{"no mode 9"}},
		{"limit that is off", "p", "usr=1", overrides.Override{Limit: hourly, Mode: overrides.Off}, []string{"off has no limit"}},
		{"limit of the banned", "p", "usr=1", overrides.Override{Limit: hourly, Mode: overrides.Banned}, []string{"banned has no limit"}},
		{"ban of everyone", "p", "*", ban, []string{"a ban is of one key"}},
		{"past", "p", "usr=1", overrides.Override{Limit: hourly, Until: past}, []string{"has passed"}},
		{"all at once", "*", "", overrides.Override{Limit: hourly, Mode: overrides.Off, Until: past},
			[]string{"only key", "0 bytes", "off has no limit", "no limit is that of all", "has passed"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := overrides.NewMemory().Set(ctx, tt.policy, tt.key, tt.override)
			if (err != nil) != (tt.want != nil) || err != nil && !errors.Is(err, overrides.ErrInvalid) {
				t.Fatalf("got error %v, want one of ErrInvalid that says %q", err, tt.want)
			}
			for _, words := range tt.want {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("got error %v, want it to say %q", err, words)
				}
			}
			if len(tt.want) > 0 && strings.Count(err.Error(), "\n")+1 != len(tt.want) {
				t.Errorf("got error %v, want %d lines", err, len(tt.want))
			}
		})
	}
}

func TestJSON(t *testing.T) {
	for _, tt := range []struct {
		override overrides.Override
		want     string
	}{
		{overrides.Override{}, `{}`},
		{overrides.Override{Limit: hourly}, `{"limit":"token-bucket 10/1h"}`},
		{overrides.Override{Mode: overrides.Banned, Until: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)}, `{"mode":"banned","until":"2030-01-02T03:04:05Z"}`},
	} {
		got, err := json.Marshal(tt.override)
		if err != nil || string(got) != tt.want {
			t.Errorf("got %s, error %v, want %s", got, err, tt.want)
		}
		var back overrides.Override
		if err := json.Unmarshal(got, &back); err != nil || !same(back, tt.override) {
			t.Errorf("%s: got %+v, error %v, want %+v", got, back, err, tt.override)
		}
	}
	var o overrides.Override
	for _, text := range []string{`{"mode":"loud"}`, `{"limit":"1 per day"}`, `{"until":"tomorrow"}`, `{"mode":1}`} {
		if err := json.Unmarshal([]byte(text), &o); err == nil {
			t.Errorf("%s: got no error", text)
		}
	}
	if text, err := overrides.Mode(9).MarshalText(); err == nil || overrides.Mode(9).String() != "unknown" {
		t.Errorf("got mode %s of 9, want an error", text)
	}
}

// A single key goes before everyone, and everyone of a policy before all policies.
func TestPrecedence(t *testing.T) {
	m := overrides.NewMemory()
	own, everyone, off := overrides.Override{}, overrides.Override{Limit: hourly}, overrides.Override{Mode: overrides.Off}
	wantNone(t, m, "p", "usr=1")
	set(t, m, overrides.All, overrides.Everyone, off)
	wantFound(t, m, "p", "usr=1", off)
	wantFound(t, m, "p", overrides.Everyone, off)
	set(t, m, "p", overrides.Everyone, everyone)
	wantFound(t, m, "p", "usr=1", everyone)
	wantFound(t, m, "p", overrides.Everyone, everyone)
	wantFound(t, m, "q", "usr=1", off)
	set(t, m, "p", "usr=1", own)
	wantFound(t, m, "p", "usr=1", own)
	wantFound(t, m, "p", "usr=2", everyone)
	for _, place := range [][2]string{{"p", "usr=1"}, {"p", "*"}, {"*", "*"}, {"p", "usr=9"}} {
		if err := m.Clear(ctx, place[0], place[1]); err != nil {
			t.Error(err)
		}
	}
	wantNone(t, m, "p", "usr=1")
	if err := m.Clear(ctx, "p", ""); !errors.Is(err, overrides.ErrInvalid) {
		t.Errorf("got error %v, want ErrInvalid", err)
	}
	if _, err := m.List(ctx, ""); !errors.Is(err, overrides.ErrInvalid) {
		t.Errorf("got error %v, want ErrInvalid", err)
	}
}

// An override that has ended is as if it had never been, to the instant.
func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, until := overrides.NewMemory(), time.Now().Add(time.Minute)
		ban := overrides.Override{Mode: overrides.Banned, Until: until}
		everyone := overrides.Override{Mode: overrides.Shadow, Until: until.Add(time.Minute)}
		set(t, m, "p", "usr=1", ban)
		set(t, m, "p", overrides.Everyone, everyone)
		time.Sleep(time.Minute - 1)
		wantFound(t, m, "p", "usr=1", ban)
		time.Sleep(time.Nanosecond)
		wantFound(t, m, "p", "usr=1", everyone)
		if all, err := m.List(ctx, "p"); err != nil || len(all) != 1 || !same(all["*"], everyone) {
			t.Errorf("got %v, error %v, want that of everyone", all, err)
		}
		time.Sleep(time.Minute)
		wantNone(t, m, "p", "usr=1")
	})
}
