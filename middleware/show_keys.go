package middleware

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// A KeyDisplay says how much of its keys a policy shows to those who operate
// it, in TopDenied and in the debug log. It never shows a secret: API keys are
// HMACs already, and shown as these, and routes and constants are shown as they
// are.
type KeyDisplay uint8

const (
	// ShowHashed shows ip=192.0.2.1 as ip=# and the first eight bytes of its
	// SHA-256 in hexadecimal, like printf ip=192.0.2.1 | sha256sum does: enough
	// to tell clients apart, and to check a suspect. (Who tries all addresses
	// finds it.)
	ShowHashed KeyDisplay = iota
	// ShowPrefix shows half of the value, at most eight bytes: ip=192.….
	ShowPrefix
	// ShowPlain shows the whole key.
	ShowPlain

	keyDisplays
)

const (
	shownHash   = 8 // bytes
	shownPrefix = 8
)

// show returns a key for people.
func (k KeyDisplay) show(key string) string {
	if k == ShowPlain {
		return key
	}
	parts := strings.Split(key, "|")
	for i, part := range parts {
		parts[i] = k.showPart(part)
	}
	return strings.Join(parts, "|")
}

func (k KeyDisplay) showPart(part string) string {
	kind, value, _ := strings.Cut(part, "=")
	switch {
	case kind == "rt" || kind == "const" || kind == "key":
		return part
	case k == ShowPrefix:
		return kind + "=" + value[:min(len(value)/2, shownPrefix)] + "…"
	default:
		sum := sha256.Sum256([]byte(part))
		return kind + "=#" + hex.EncodeToString(sum[:shownHash])
	}
}
