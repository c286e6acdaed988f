package console

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/middleware"
	"github.com/penstock-go/penstock/middleware/overrides"
)

// A Standing says how a policy treats one key of a client.
type Standing struct {
	// Says is all of it in a sentence.
	Says string `json:"says"`

	Policy string `json:"policy"`

	// Key is the text of the key. A part whose value is unknown is only its kind:
	// "usr=42|ip".
	Key string `json:"key"`

	// Verdict is what happens to a request of one unit now.
	Verdict Verdict `json:"verdict"`

	// Reason is the limit that decides, or why no limit does; empty if the verdict
	// is Unknown.
	Reason Reason `json:"reason,omitempty"`

	// ClearsAfter is the time until a denied request would be admitted.
	ClearsAfter Wait `json:"clears_after,omitzero"`

	// Limits are the limits that may decide, one if it is known which one does.
	Limits []LimitState `json:"limits,omitempty"`

	// Override is the override in force; nil means none. SetFor is the policy and
	// the key for which it is set, if the table can tell.
	Override *ratelimit.Override `json:"override,omitempty"`
	SetFor   []string            `json:"override_set_for,omitempty"`

	// Guessers is how many addresses sent this process many unknown API keys, so that a
	// key that is new from one of them waits for its turn. Of the key of an address, it
	// is 1 if that address is one of them.
	Guessers int `json:"guessers,omitempty"`

	// Denied counts the denials of the key, by all Middlewares of the console in the
	// last ten to twenty minutes. First and Last are ratelimit.Offender's.
	Denied uint64    `json:"denied,omitempty"`
	First  time.Time `json:"first_denied,omitzero"`
	Last   time.Time `json:"last_denied,omitzero"`
}

// A Wait is a time to wait; [algorithms.Never] if waiting cannot help.
type Wait time.Duration

// String returns the wait as a time.Duration has it, or never.
func (w Wait) String() string {
	if time.Duration(w) == algorithms.Never {
		return "never"
	}
	return time.Duration(w).String()
}

// MarshalText implements encoding.TextMarshaler.
func (w Wait) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (w *Wait) UnmarshalText(text []byte) error {
	if string(text) == "never" {
		*w = Wait(algorithms.Never)
		return nil
	}
	d, err := time.ParseDuration(string(text))
	*w = Wait(d)
	return err
}

// A Verdict is what happens to a request.
type Verdict string

const (
	// Admitted: the policy admits it. So does a shadow.
	Admitted Verdict = "admitted"
	// Denied: the policy denies it.
	Denied Verdict = "denied"
	// Unknown: it depends on the client's tier, on LimitOf or on the rest of the
	// key, which this process does not know.
	Unknown Verdict = "unknown"
)

// A LimitState is a limit and its state for one key; see [algorithms.Decision].
type LimitState struct {
	Reason     Reason           `json:"from"`
	Tier       string           `json:"tier,omitempty"` // for ByTier
	Limit      algorithms.Limit `json:"limit"`
	Remaining  int64            `json:"remaining"`
	ResetAfter Wait             `json:"reset_after"`
	UnitAfter  Wait             `json:"unit_after"`       // until a unit is there
	Source     string           `json:"source"`           // of algorithms.Source
	Stored     string           `json:"stored,omitempty"` // the key in Redis, if it is there
}

// A Reason says where a limit comes from, or why no limit decides.
type Reason string

const (
	// ByDefault: Policy.Limit.
	ByDefault Reason = "default"
	// ByTier: one of Policy.Tiers.
	ByTier Reason = "tier"
	// ByShare: the tenant's share of Policy.Limit, and what is left of that.
	ByShare Reason = "share"
	// ByLimitOf: what Policy.LimitOf returned at the last denial.
	ByLimitOf Reason = "limit_of"
	// ByOverride: the limit of an override, or an override that is off.
	ByOverride Reason = "override"
	// ByBan: Policy.Ban, or an override that bans the key.
	ByBan Reason = "ban"
	// ByOutage: Redis is away, and Policy.Fail decides.
	ByOutage Reason = "outage"
)

func (s *Standing) says() string {
	switch {
	case s.Verdict == Unknown:
		return fmt.Sprintf("%s may deny %s: it depends on %s", s.Policy, s.Key, s.depends())
	case s.Verdict == Denied && s.Reason == ByOutage:
		return fmt.Sprintf("%s denies %s: Redis does not answer, and the policy fails closed", s.Policy, s.Key)
	case s.Verdict == Denied && time.Duration(s.ClearsAfter) == algorithms.Never:
		return fmt.Sprintf("%s denies %s until an operator ends it: %s", s.Policy, s.Key, s.why())
	case s.Verdict == Denied:
		return fmt.Sprintf("%s denies %s for %v: %s", s.Policy, s.Key, s.ClearsAfter, s.why())
	default:
		return fmt.Sprintf("%s admits %s: %s", s.Policy, s.Key, s.why())
	}
}

// depends says what the verdict depends on.
func (s *Standing) depends() string {
	switch {
	case s.Limits == nil && s.Guessers > 0:
		return "its API key, because the address sent unknown ones: a key that is new from it waits for its turn"
	case s.Limits == nil:
		return "the rest of its key, and this process knows no such request"
	case len(s.Limits) > 1:
		return "the client's tier"
	default:
		return "LimitOf"
	}
}

// why says which limit decides.
func (s *Standing) why() string {
	switch s.Reason {
	case ByBan:
		return "it is banned"
	case ByOutage:
		return "Redis does not answer, and the policy fails open"
	case ByOverride:
		// An override that came while the limits were read is not the Standing's.
		if o := s.Override; o != nil && (o.Limit == (algorithms.Limit{}) || s.Limits == nil) {
			return "an override says " + string(o.Mode)
		}
	case "":
		if s.Limits == nil {
			return "it has sent few unknown keys"
		}
		return "every limit that it may have has units left"
	case ByShare:
		return s.ofShare()
	}
	l := s.Limits[0]
	text := fmt.Sprintf("%v has %d left, from %s", l.Limit, l.Remaining, l.Reason)
	if l.Tier != "" {
		text += " " + l.Tier
	}
	return text
}

// Who says how every policy that can count a client treats it: the denied keys
// first. It takes no units.
//
// Several subjects are parts of one client: its account and its address, or whole
// keys. For a key with a route, Who lists the routes that the policy has met. The
// tier, and the result of LimitOf, are those of the key's last denial by this
// process; without one, the answer stands per tier.
func (c *Console) Who(ctx context.Context, client ...Subject) ([]Standing, error) {
	given := slices.Clone(client)
	for i := range given {
		if err := given[i].validate(); err != nil {
			return nil, err
		}
		plain, err := c.reveal(given[i].Key)
		if err != nil {
			return nil, err
		}
		given[i].Key = plain
	}
	var all []Standing
	for w := range c.policies() {
		for _, key := range w.keysOf(given) {
			s, err := c.standing(ctx, w.target(key))
			if err != nil {
				return nil, err
			}
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		counts := ""
		for w := range c.policies() {
			counts += fmt.Sprintf("; %s counts %s", w.policy.Name, w.shapes())
		}
		return nil, fmt.Errorf("ratelimit: %w: no policy has a key of this client%s", algorithms.ErrInvalid, counts)
	}
	sortStandings(all)
	return all, nil
}

// sortStandings puts the denied keys first, and those last of which nothing is known.
func sortStandings(all []Standing) {
	rank := func(s *Standing) int {
		if s.Verdict == Unknown && s.Limits == nil && s.Guessers == 0 {
			return 3
		}
		return slices.Index([]Verdict{Denied, Unknown, Admitted}, s.Verdict)
	}
	slices.SortStableFunc(all, func(a, b Standing) int {
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), -cmp.Compare(a.Denied, b.Denied))
	})
}

// standing judges one key.
func (c *Console) standing(ctx context.Context, t *target) (s Standing, err error) {
	s = Standing{Policy: t.policy.Name, Key: t.key, Override: t.override}
	defer func() { s.Says = s.says() + s.guessing() }()
	if t.override != nil {
		s.SetFor = t.setFor(ctx)
	}
	for _, o := range t.offenders {
		if o.Plain != t.key && !(len(o.Plain) == cut && strings.HasPrefix(t.key, o.Plain)) {
			continue
		}
		s.First, s.Last = earlier(s.First, o.First.UTC()), later(s.Last, o.Last.UTC())
		s.Denied += o.Denied - o.Error
	}
	if !whole(t.key) {
		s.Verdict = Unknown
		return s, nil
	}
	s.Guessers = t.guessers()
	if t.uncounted() {
		t.judgeUncounted(&s)
		return s, nil
	}
	s.Limits = t.limits(c.lastDenial(t))
	if err := t.look(ctx, s.Limits); err != nil {
		return s, err
	}
	return s, t.judge(ctx, &s)
}

// setFor returns the policy and the key for which the override in force is set; nil if the table cannot tell.
func (t *target) setFor(ctx context.Context) []string {
	table, ok := t.m.Overrides().(editor)
	if !ok {
		return nil
	}
	first := firstOf(t.key)
	for _, at := range [][]string{ // in their order of precedence
		{t.policy.Name, t.key}, {t.policy.Name, first}, {t.policy.Name, ratelimit.Everyone},
		{overrides.All, first}, {overrides.All, ratelimit.Everyone},
	} {
		if all, err := table.List(ctx, at[0]); err == nil {
			if o, found := all[at[1]]; found && o == *t.override {
				return at
			}
		}
	}
	return nil
}
