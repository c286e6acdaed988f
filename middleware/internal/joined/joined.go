// Package joined makes each of several errors a complete line.
package joined

import "fmt"

// Prefix returns the errors that err joins, each with the prefix; nil if err is nil.
func Prefix(prefix string, err error) []error {
	if err == nil {
		return nil
	}
	several, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{fmt.Errorf("%s: %w", prefix, err)}
	}
	var all []error
	for _, e := range several.Unwrap() {
		all = append(all, Prefix(prefix, e)...)
	}
	return all
}
