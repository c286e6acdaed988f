// Names of policies, which are part of every stored key.

package algorithms

import "fmt"

const maxPolicy = 64 // bytes of a policy's name, and of a suffix

// ValidatePolicy returns an error unless name can be a policy's: a letter, then
// up to 63 letters, digits, '.', '_' or '-'.
func ValidatePolicy(name string) error {
	if !validName(name) {
		return fmt.Errorf("the name %q is not %s", name, policyForm)
	}
	return nil
}

const policyForm = "a letter and up to 63 letters, digits, '.', '_' or '-'"

// validPolicy reports whether a name may be part of a stored key: a policy's
// name, and perhaps a suffix of '~' and another such name.
func validPolicy(name string) bool {
	n := nameLen(name)
	if n == len(name) {
		return n > 0
	}
	return n > 0 && name[n] == '~' && validName(name[n+1:])
}

func validName(name string) bool { return name != "" && nameLen(name) == len(name) }

// nameLen returns the length of the name at the beginning of text, or 0.
func nameLen(text string) int {
	if text == "" || !isLetter[text[0]] {
		return 0
	}
	for i := range min(len(text), maxPolicy) {
		if !inName[text[i]] {
			return i
		}
	}
	return min(len(text), maxPolicy)
}

// isLetter and inName hold the bytes that begin names, and those in names. They are
// tables because every check is validated.
var isLetter, inName = func() (letters, all [256]bool) {
	for i := range all {
		b := byte(i)
		letters[i] = 'a' <= b|0x20 && b|0x20 <= 'z'
		all[i] = letters[i] || '0' <= b && b <= '9' || b == '.' || b == '_' || b == '-'
	}
	return letters, all
}()
