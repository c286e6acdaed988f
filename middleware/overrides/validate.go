// Which overrides are valid.

package overrides

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/penstock-go/penstock/algorithms"
	ratelimit "github.com/penstock-go/penstock/middleware"
)

const (
	// All is the policy of an override for all policies. Its keys are
	// ratelimit.Everyone, and first parts of keys.
	All = "*"

	// MaxPerPolicy bounds the overrides of one policy.
	MaxPerPolicy = 100_000

	// MaxPolicies bounds the policies that have overrides.
	MaxPolicies = 1_000

	// MaxKey bounds the bytes of an override's key.
	MaxKey = 1024

	maxBy = 128
)

var (
	// ErrInvalid: an override, its policy or its key is invalid. Its errors
	// contain no key.
	ErrInvalid = errors.New("invalid override")

	// ErrFull: [MaxPerPolicy] or [MaxPolicies] is reached.
	ErrFull = errors.New("too many overrides")
)

// validate reports every misconfiguration of an override for a policy and a key.
func validate(policy, key string, o *ratelimit.Override) error {
	errs := []error{validatePlace(policy, key)}
	refuse := func(format string, args ...any) { errs = append(errs, invalid(policy, format, args...)) }
	if !slices.Contains([]ratelimit.Mode{"", ratelimit.ModeShadow, ratelimit.ModeOff, ratelimit.ModeBanned}, o.Mode) {
		refuse("%q is not a mode: want shadow, off or banned, or omit it", o.Mode)
	}
	if o.Limit != (algorithms.Limit{}) {
		if err := o.Limit.Validate(); err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				refuse("%s", strings.TrimPrefix(line, algorithms.ErrInvalid.Error()+": "))
			}
		}
		if o.Mode == ratelimit.ModeOff || o.Mode == ratelimit.ModeBanned {
			refuse("the mode %q and a limit cannot be combined", o.Mode)
		}
		if policy == All {
			refuse("all policies share no limit: set a mode")
		}
	}
	if o.Mode == ratelimit.ModeBanned && key == ratelimit.Everyone {
		refuse("a ban is for one key: to deny everyone, set the limit %q", algorithms.Nobody())
	}
	if len(o.By) > maxBy || !utf8.ValidString(o.By) {
		refuse("By has %d bytes: want at most %d, in UTF-8", len(o.By), maxBy)
	}
	if !live(o) {
		refuse("Until (%s) has passed", o.Until.Format(time.RFC3339))
	}
	return errors.Join(errs...)
}

// validatePlace reports every misconfiguration of the policy and the key of an
// override.
func validatePlace(policy, key string) error {
	var errs []error
	if policy != All {
		if err := algorithms.ValidatePolicy(policy); err != nil {
			errs = append(errs, invalid(policy, "%w", err))
		}
	} else if strings.Contains(key, "|") {
		errs = append(errs, invalid(policy, "the key has several parts: want its first part, such as usr=42, or %q", ratelimit.Everyone))
	}
	if key == "" || len(key) > MaxKey {
		errs = append(errs, invalid(policy, "the key has %d bytes: want 1 to %d", len(key), MaxKey))
	}
	return errors.Join(errs...)
}

// errPolicies and errPerPolicy are the errors of a full table.
var errPolicies = fmt.Errorf("ratelimit: %w: %d policies have overrides", ErrFull, MaxPolicies)

func errPerPolicy(policy string) error {
	return fmt.Errorf("ratelimit: %w: policy %q has %d", ErrFull, policy, MaxPerPolicy)
}

func invalid(policy, format string, args ...any) error {
	return fmt.Errorf("ratelimit: %w of policy %q: %w", ErrInvalid, policy, fmt.Errorf(format, args...))
}
