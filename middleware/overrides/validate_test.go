// Tests of the rules for overrides, their JSON, their precedence and their end.

package overrides_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	ratelimit "github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
)

func TestValidate(t *testing.T) {
	soon, past := time.Now().Add(time.Hour), time.Now().Add(-time.Second)
	limited, ban := ratelimit.Override{Limit: hourly}, ratelimit.Override{Mode: ratelimit.ModeBanned}
	for _, tt := range []struct {
		name        string
		policy, key string
		override    ratelimit.Override
		want        []string // in the error; none: it is valid
	}{
		{"limit", "p", "usr=1", limited, nil},
		{"limit for a time", "p", "usr=1", ratelimit.Override{Limit: hourly, Until: soon}, nil},
		{"limit in shadow", "p", "usr=1", ratelimit.Override{Limit: hourly, Mode: ratelimit.ModeShadow}, nil},
		{"nothing", "p", "usr=1", ratelimit.Override{}, nil},
		{"ban", "p", "usr=1", ban, nil},
		{"everyone", "p", "*", limited, nil},
		{"all policies", "*", "*", ratelimit.Override{Mode: ratelimit.ModeOff}, nil},
		{"bad policy", "a b", "usr=1", limited, []string{`"a b" is not a letter`}},
		{"candidate's policy", "p~candidate", "usr=1", limited, []string{"is not a letter"}},
		{"a client in all policies", "*", "usr=1", ban, nil},
		{"a whole key of all policies", "*", "usr=1|rt=a", ban, []string{"several parts"}},
		{"a limit of all policies", "*", "*", limited, []string{"share no limit"}},
		{"no key", "p", "", limited, []string{"the key has 0 bytes"}},
		{"long key", "p", strings.Repeat("a", 1025), limited, []string{"the key has 1025 bytes"}},
		{"bad limit", "p", "usr=1", ratelimit.Override{Limit: algorithms.TokenBucket(0, time.Second)}, []string{"0/1s: requests must be", "0/1s: the burst must be"}},
		{"no such mode", "p", "usr=1", ratelimit.Override{Mode: "on"}, []string{`"on" is not a mode`}},
		{"limit that is off", "p", "usr=1", ratelimit.Override{Limit: hourly, Mode: ratelimit.ModeOff}, []string{`"off" and a limit`}},
		{"limit of the banned", "p", "usr=1", ratelimit.Override{Limit: hourly, Mode: ratelimit.ModeBanned}, []string{`"banned" and a limit`}},
		{"ban of everyone", "p", "*", ban, []string{"a ban is for one key"}},
		{"past", "p", "usr=1", ratelimit.Override{Limit: hourly, Until: past}, []string{"has passed"}},
		{"all at once", "*", "", ratelimit.Override{Limit: hourly, Mode: ratelimit.ModeOff, Until: past},
			[]string{"0 bytes", `"off" and a limit`, "share no limit", "has passed"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := overrides.NewMemory().Set(ctx, tt.policy, tt.key, tt.override)
			if (err != nil) != (tt.want != nil) || err != nil && !errors.Is(err, overrides.ErrInvalid) {
				t.Fatalf("got error %v, want ErrInvalid that says %q", err, tt.want)
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
		override ratelimit.Override
		want     string
	}{
		{ratelimit.Override{}, `{}`},
		{ratelimit.Override{Limit: hourly}, `{"limit":"token-bucket 10/1h"}`},
		{ratelimit.Override{Mode: ratelimit.ModeBanned, Until: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)}, `{"mode":"banned","until":"2030-01-02T03:04:05Z"}`},
	} {
		got, err := json.Marshal(tt.override)
		if err != nil || string(got) != tt.want {
			t.Errorf("got %s, error %v, want %s", got, err, tt.want)
		}
		var back ratelimit.Override
		if err := json.Unmarshal(got, &back); err != nil || !same(back, tt.override) {
			t.Errorf("%s: got %+v, error %v, want %+v", got, back, err, tt.override)
		}
	}
	var o ratelimit.Override
	for _, text := range []string{`{"limit":"1 per day"}`, `{"until":"tomorrow"}`, `{"mode":1}`} {
		if err := json.Unmarshal([]byte(text), &o); err == nil {
			t.Errorf("%s: got no error", text)
		}
	}
}

// The override of a key precedes the override of everyone, which precedes the override of all policies.
func TestPrecedence(t *testing.T) {
	m := overrides.NewMemory()
	own, everyone, off := ratelimit.Override{}, ratelimit.Override{Limit: hourly}, ratelimit.Override{Mode: ratelimit.ModeOff}
	wantNone(t, m, "p", "usr=1")
	set(t, m, overrides.All, ratelimit.Everyone, off)
	wantFound(t, m, "p", "usr=1", off)
	wantFound(t, m, "p", ratelimit.Everyone, off)
	set(t, m, "p", ratelimit.Everyone, everyone)
	wantFound(t, m, "p", "usr=1", everyone)
	wantFound(t, m, "p", ratelimit.Everyone, everyone)
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

// An override ends at the instant Until.
func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, until := overrides.NewMemory(), time.Now().Add(time.Minute)
		ban := ratelimit.Override{Mode: ratelimit.ModeBanned, Until: until}
		everyone := ratelimit.Override{Mode: ratelimit.ModeShadow, Until: until.Add(time.Minute)}
		set(t, m, "p", "usr=1", ban)
		set(t, m, "p", ratelimit.Everyone, everyone)
		time.Sleep(time.Minute - 1)
		wantFound(t, m, "p", "usr=1", ban)
		time.Sleep(time.Nanosecond)
		wantFound(t, m, "p", "usr=1", everyone)
		if all, err := m.List(ctx, "p"); err != nil || len(all) != 1 || !same(all["*"], everyone) {
			t.Errorf("got %v, error %v, want the override of everyone", all, err)
		}
		time.Sleep(time.Minute)
		wantNone(t, m, "p", "usr=1")
	})
}
