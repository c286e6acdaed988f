package algorithms

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
)

const (
	maxPart   = 128 // bytes of a key's part that are stored as they are
	maxPolicy = 64  // bytes of a policy's name, and of a suffix
)

// An identity is as good as a stored key, and takes no time to make.
type identity struct {
	policy, key string
	algorithm   Algorithm
}

func identityOf(c *Check) identity { return identity{c.Policy, c.Key, c.Limit.scope()} }

// clone returns the identity without anything of its caller's.
func (id identity) clone() identity {
	return identity{strings.Clone(id.policy), strings.Clone(id.key), id.algorithm}
}

// maxKept is the longest key, in bytes, that is kept beside a store: clients may
// choose keys, and a bound of their number alone would not bound memory.
const maxKept = 1024 + 128

// appendStored appends the key under which c's state is stored:
//
//	{first}|rest:policy:tag
//
// Only the first part of the key, the principal, stands in the hash tag, so
// that all counters of one principal share a Redis Cluster slot. Neither tag
// nor policy contain a colon, so no two checks share a key by accident.
func appendStored(dst []byte, c *Check) []byte {
	dst = append(dst, '{')
	rest := c.Key
	for first := true; ; first = false {
		part, more, found := strings.Cut(rest, "|")
		dst = appendPart(dst, part)
		if first {
			dst = append(dst, '}')
		}
		if !found {
			break
		}
		dst = append(dst, '|')
		rest = more
	}
	dst = append(dst, ':')
	dst = append(dst, c.Policy...)
	dst = append(dst, ':')
	return append(dst, table[c.Limit.scope()].tag...)
}

// appendPart appends a part of a key, or '#' and its digest if it could not
// stand there as it is. What begins with '#' is digested, too: else it could
// be made to equal another part's digest.
func appendPart(dst []byte, part string) []byte {
	if plain(part) {
		return append(dst, part...)
	}
	sum := sha256.Sum256([]byte(part))
	dst = append(dst, '#')
	return base64.RawURLEncoding.AppendEncode(dst, sum[:])
}

func plain(part string) bool {
	if part == "" || len(part) > maxPart || part[0] == '#' {
		return false
	}
	for i := range len(part) {
		if b := part[i]; b <= ' ' || b > '~' || b == '{' || b == '}' {
			return false
		}
	}
	return true
}

// ValidatePolicy returns an error unless name can be a policy's: a letter, then
// up to 63 letters, digits, '.', '_' or '-'.
func ValidatePolicy(name string) error {
	if !validName(name) {
		return fmt.Errorf("the name %q is not %s", name, policyForm)
	}
	return nil
}

const policyForm = "a letter and up to 63 letters, digits, '.', '_' or '-'"

// validPolicy reports whether a name may be part of a stored key: a letter,
// then up to 63 letters, digits, '.', '_' or '-', and perhaps a suffix of the
// same that begins with '~'.
func validPolicy(name string) bool {
	n := nameLen(name)
	if n == len(name) {
		return n > 0
	}
	return n > 0 && name[n] == '~' && validName(name[n+1:])
}

func validName(name string) bool { return name != "" && nameLen(name) == len(name) }

// nameLen returns the length of the name that text begins with, 0 if none.
func nameLen(text string) int {
	if text == "" || !letter(text[0]) {
		return 0
	}
	for i := range min(len(text), maxPolicy) {
		if !inName[text[i]] {
			return i
		}
	}
	return min(len(text), maxPolicy)
}

// inName tells the bytes of names. A table, since every check is validated.
var inName = func() (in [256]bool) {
	for i := range in {
		b := byte(i)
		in[i] = letter(b) || '0' <= b && b <= '9' || b == '.' || b == '_' || b == '-'
	}
	return in
}()

func letter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }

// validate returns every mistake of the check at once, without the key itself:
// errors are logged, and a key may name a person.
func (c *Check) validate() error {
	if c.Limit.valid && c.Cost >= 0 && c.validOp() && c.Key != "" && validPolicy(c.Policy) && !c.foreignReceipt() {
		return nil
	}
	var mistakes []string
	if !validPolicy(c.Policy) {
		mistakes = append(mistakes, "the policy's name is not "+policyForm)
	}
	if c.Key == "" {
		mistakes = append(mistakes, "the key is empty")
	}
	if c.Cost < 0 {
		mistakes = append(mistakes, fmt.Sprintf("the cost %d is negative", c.Cost))
	}
	if !c.validOp() {
		mistakes = append(mistakes, fmt.Sprintf("there is no op %d", c.Op))
	}
	if c.foreignReceipt() {
		mistakes = append(mistakes, fmt.Sprintf("the receipt is of a %v, not of a %v", c.Decision.Receipt.algorithm, c.Limit.algorithm))
	}
	if err := c.Limit.Validate(); err != nil {
		mistakes = append(mistakes, strings.TrimPrefix(err.Error(), ErrInvalid.Error()+": "))
	}
	return fmt.Errorf("algorithms: %w of policy %q: %s", ErrInvalid, c.Policy, strings.Join(mistakes, "; "))
}

// validOp reports whether there is such an op. No limiter issues a receipt such
// as a backfill has.
func (c *Check) validOp() bool {
	r := &c.Decision.Receipt
	return c.Op < opCount || (c.Op == backfill && r.at > 0 && r.algorithm == algorithmNone)
}

// foreignReceipt reports whether c returns or renews what another algorithm, and
// so another stored key, was charged.
func (c *Check) foreignReceipt() bool {
	r := &c.Decision.Receipt
	return c.Op.reads() && r.units > 0 && r.algorithm != c.Limit.algorithm && c.Limit.algorithm != algorithmNobody
}
