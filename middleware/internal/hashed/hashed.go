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
// Routes, constants and the part * are shown as they are. Of a part without a kind,
// only the hash is shown.
func Key(key string) string {
	parts := strings.Split(key, "|")
	for i, part := range parts {
		kind, _, found := strings.Cut(part, "=")
		if found && (kind == "rt" || kind == "const") || part == "*" {
			continue
		}
		sum := sha256.Sum256([]byte(part))
		if parts[i] = "#" + hex.EncodeToString(sum[:shown]); found {
			parts[i] = kind + "=" + parts[i]
		}
	}
	return strings.Join(parts, "|")
}
