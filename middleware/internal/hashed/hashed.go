// Package hashed shows keys to operators without the data of clients.
package hashed

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// shown is how many bytes of a hash an operator sees.
const shown = 8

// Key returns a key with each part as its kind and the start of its SHA-256.
// Routes, constants, and a key without kinds such as * are shown as they are.
func Key(key string) string {
	parts := strings.Split(key, "|")
	for i, part := range parts {
		kind, _, found := strings.Cut(part, "=")
		if kind == "rt" || kind == "const" || part == "*" && !found {
			continue
		}
		sum := sha256.Sum256([]byte(part))
		parts[i] = kind + "=#" + hex.EncodeToString(sum[:shown])
	}
	return strings.Join(parts, "|")
}
