package replay

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// Options are the options of [Run].
type Options struct {
	// Files are the names of the logs; "-" is Stdin. Name at least one.
	Files []string

	// Tiers are the tiers of users, by the names that the log has.
	Tiers map[string]string

	// Format is the format of the report: "text", "json", or "html" for a page with curves; ""
	// means text.
	Format string

	// DurationUnit is the unit of durations in the logs that are bare numbers, and whose name and
	// format say none: "s", "ms", "us" or "ns". "" means the unit that each file shows.
	DurationUnit string

	// DenyClients is the share of clients, in per cent, that a proposal may deny. 0 means 1 %,
	// and a negative number means none.
	DenyClients float64

	// Headroom, in per cent, is added to a proposal. 0 means 20 %, and a negative number
	// means none.
	Headroom float64

	// Stdin is a log for "-"; nil means os.Stdin.
	Stdin io.Reader

	// Stdout receives the report, and Stderr a line for each million requests; nil means
	// os.Stdout and os.Stderr.
	Stdout, Stderr io.Writer
}

const (
	defaultShare    = 1 // per cent
	defaultHeadroom = 20
)

// Flags defines flags for all options that are texts or numbers, and returns the Options
// that they set: -replay (Files; it may be repeated), -format, -duration-unit,
// -deny-clients and -headroom.
func Flags(flags *flag.FlagSet) *Options {
	o := &Options{}
	flags.Func("replay", "replay this access `log`, instead of serving; - is the standard input", func(name string) error {
		o.Files = append(o.Files, name)
		return nil
	})
	flags.StringVar(&o.Format, "format", "text", "write the report in this `format`: text, json or html")
	flags.StringVar(&o.DurationUnit, "duration-unit", "", "durations in the logs that name no unit are in this `unit`: s, ms, us or ns")
	flags.Func("deny-clients", "find and propose the smallest limit that denies at most this `per-cent` of clients (default 1)", percentage(&o.DenyClients))
	flags.Func("headroom", "add this `per-cent` to a proposal (default 20)", percentage(&o.Headroom))
	return o
}

// none says 0 %, because 0 means the default.
const none = -1

// percentage returns the function of a flag in which 0 means 0 %.
func percentage(to *float64) func(string) error {
	return func(text string) error {
		value, err := strconv.ParseFloat(text, 64)
		if err != nil || !(value >= 0) {
			return errors.New("want a number from 0")
		}
		*to = cmp.Or(value, none)
		return nil
	}
}

// validate reports every misconfiguration.
func (o *Options) validate() error {
	var errs []error
	if len(o.Files) == 0 {
		errs = append(errs, errors.New("no files: name at least one log"))
	}
	if !slices.Contains([]string{"", "text", "json", "html"}, o.Format) {
		errs = append(errs, fmt.Errorf("the format is %q; want text, json or html", o.Format))
	}
	if !slices.Contains([]string{"", "s", "ms", "us", "ns"}, o.DurationUnit) {
		errs = append(errs, fmt.Errorf("the unit of durations is %q; want s, ms, us or ns", o.DurationUnit))
	}
	if !(o.DenyClients <= 100) {
		errs = append(errs, fmt.Errorf("the clients to deny: %v %%; want at most 100 %%", o.DenyClients))
	}
	if !(o.Headroom <= 1000) {
		errs = append(errs, fmt.Errorf("the headroom: %v %%; want at most 1000 %%", o.Headroom))
	}
	return errors.Join(errs...)
}

// targets returns the share and the headroom as parts of 1.
func (o *Options) targets() targets {
	part := func(value, otherwise float64) float64 { return max(0, cmp.Or(value, otherwise)) / 100 }
	return targets{part(o.DenyClients, defaultShare), part(o.Headroom, defaultHeadroom)}
}
