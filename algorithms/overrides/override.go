// The Override: what holds for a key, and what is valid.

package overrides

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/penstock-go/penstock/algorithms"
)

const (
	// Everyone is the key of what holds for all keys of a policy. No key of
	// package keyfunc is equal to it.
	Everyone = "*"

	// All is the policy of what holds for all policies. Its only key is
	// Everyone.
	All = "*"

	// MaxPerPolicy bounds the overrides of one policy.
	MaxPerPolicy = 100_000

	// MaxPolicies bounds the policies that have overrides.
	MaxPolicies = 1_000

	// MaxKey bounds the bytes of an override's key.
	MaxKey = 1024
)

var (
	// ErrInvalid is wrapped by the errors of overrides that mean nothing.
	ErrInvalid = errors.New("invalid override")

	// ErrFull is wrapped by the error of Set when there are [MaxPerPolicy]
	// overrides of a policy, or [MaxPolicies] policies with some.
	ErrFull = errors.New("too many overrides")
)

// An Override is what holds for a key instead of what its policy says. The zero
// Override says that the policy's own limits apply, whatever is said of everyone.
//
// As JSON it is e.g. {"limit":"60/1m burst 10","mode":"shadow","until":"2026-11-21T12:00:00Z"},
// where what is zero is left out.
type Override struct {
	// Limit replaces the policy's limit; the zero Limit leaves that as it is.
	// Off and Banned have none.
	Limit algorithms.Limit `json:"limit,omitzero"`

	// Mode says what becomes of the policy; the zero value is On.
	Mode Mode `json:"mode,omitzero"`

	// Until is when the override ends by itself; the zero Time means never.
	Until time.Time `json:"until,omitzero"`
}

// A Mode says what becomes of a policy for the keys of an override.
type Mode uint8

const (
	// On: the policy applies, with the override's Limit if it has one.
	On Mode = iota
	// Shadow: the policy decides, counts and reports, and never denies.
	Shadow
	// Off: the policy is not asked, and counts nothing.
	Off
	// Banned: every request is denied, and counts nothing.
	Banned

	modeCount
)

var modeNames = [modeCount]string{"on", "shadow", "off", "banned"}

// String returns "on", "shadow", "off" or "banned".
func (m Mode) String() string {
	if m >= modeCount {
		return "unknown"
	}
	return modeNames[m]
}

// MarshalText implements [encoding.TextMarshaler].
func (m Mode) MarshalText() ([]byte, error) {
	if m >= modeCount {
		return nil, fmt.Errorf("overrides: %w: there is no mode %d", ErrInvalid, m)
	}
	return []byte(m.String()), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (m *Mode) UnmarshalText(text []byte) error {
	for i, name := range modeNames {
		if name == string(text) {
			*m = Mode(i)
			return nil
		}
	}
	return fmt.Errorf("overrides: %w: there is no mode %q; want on, shadow, off or banned", ErrInvalid, text)
}

// Replaces reports whether the override has a limit of its own.
func (o *Override) Replaces() bool { return o.Limit != algorithms.Limit{} }

// Live reports whether the override has not ended.
func (o *Override) Live() bool { return o.Until.IsZero() || time.Now().Before(o.Until) }

// Validate returns every mistake at once, or nil, of an override for a policy
// and a key. The errors wrap [ErrInvalid], and do not contain the key: errors
// are logged, and a key may name a person.
func (o *Override) Validate(policy, key string) error {
	errs := []error{validatePlace(policy, key)}
	mistake := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("overrides: %w of policy %q: %s", ErrInvalid, policy, fmt.Sprintf(format, args...)))
	}
	if o.Mode >= modeCount {
		mistake("there is no mode %d", o.Mode)
	}
	if o.Replaces() {
		if err := o.Limit.Validate(); err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				mistake("%s", strings.TrimPrefix(line, algorithms.ErrInvalid.Error()+": "))
			}
		}
		if o.Mode == Off || o.Mode == Banned {
			mistake("the mode %v has no limit", o.Mode)
		}
		if policy == All {
			mistake("no limit is that of all policies")
		}
	}
	if o.Mode == Banned && key == Everyone {
		mistake("a ban is of one key; the limit that denies everyone is %q", algorithms.Nobody())
	}
	if !o.Live() {
		mistake("Until, %v, has passed", o.Until)
	}
	return errors.Join(errs...)
}

// validatePlace returns every mistake in what an override is of.
func validatePlace(policy, key string) error {
	var errs []error
	mistake := func(text string) {
		errs = append(errs, fmt.Errorf("overrides: %w of policy %q: %s", ErrInvalid, policy, text))
	}
	if policy != All {
		if err := algorithms.ValidatePolicy(policy); err != nil {
			mistake(err.Error())
		}
	} else if key != Everyone {
		mistake(`the only key of all policies is "*"`)
	}
	if key == "" || len(key) > MaxKey {
		mistake(fmt.Sprintf("the key has %d bytes; want 1 to %d", len(key), MaxKey))
	}
	return errors.Join(errs...)
}
