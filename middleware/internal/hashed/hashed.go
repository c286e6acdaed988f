// Package hashed shows keys to operators without the data of clients.
package hashed

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/penstock-go/penstock/internal/keyaccess"
)

// shown is how many bytes of a hash an operator sees.
const shown = 8

// Key returns a key with each part as its kind and the start of its SHA-256.
// Routes, constants and the part * are shown as they are. Of a part without a kind,
// only the hash is shown. The result shares no bytes with the key.
func Key(key string) string {
	text := make([]byte, 0, 128) // on the stack: a denial has one allocation for it
	for part := range strings.SplitSeq(key, "|") {
		if len(text) > 0 {
			text = append(text, '|')
		}
		text = appendPart(text, part)
	}
	return string(text)
}

func appendPart(text []byte, part string) []byte {
	kind, _, found := strings.Cut(part, "=")
	if found && keyaccess.IsPublic(kind) || part == "*" {
		return append(text, part...)
	}
	if found {
		text = append(append(text, kind...), '=')
	}
	sum := sha256.Sum256([]byte(part))
	return hex.AppendEncode(append(text, '#'), sum[:shown])
}
