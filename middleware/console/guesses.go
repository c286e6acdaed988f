// Addresses that sent unknown API keys.

package console

import (
	"fmt"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/middleware"
)

// guessers returns Standing.Guessers.
func (t *target) guessers() int {
	if !t.apiKeys {
		return 0
	}
	slowed, all := t.m.Inside().Guesses(t.key)
	switch {
	case accountOf(t.key) != "":
		return all
	case slowed:
		return 1
	default:
		return 0
	}
}

// uncounted reports whether the key is an address for which the policy only meets
// unknown keys. The limiter counts nothing for it.
func (t *target) uncounted() bool {
	return kindOf(t.key) == address && !strings.Contains(t.key, "|") &&
		!slices.ContainsFunc(t.own, func(form []string) bool { return slices.Equal(form, []string{address}) })
}

// judgeUncounted gives the verdict about an uncounted key.
func (t *target) judgeUncounted(s *Standing) {
	s.Verdict = Admitted
	switch mode := t.mode; {
	case mode == ratelimit.ModeBanned:
		t.judgeBan(s)
	case t.override != nil && mode != "":
		s.Reason = ByOverride
	case s.Guessers > 0:
		s.Verdict = Unknown
	}
}

// guessing says how guesses change the answer; empty if they do not.
func (s *Standing) guessing() string {
	switch {
	case s.Guessers == 0 || s.Limits == nil:
		return ""
	case s.Guessers == 1:
		return "; 1 address sent unknown API keys, and a key that is new from it waits for its turn"
	default:
		return fmt.Sprintf("; %d addresses sent unknown API keys, and a key that is new from one of them waits for its turn", s.Guessers)
	}
}
