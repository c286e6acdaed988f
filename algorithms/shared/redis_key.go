// Stored keys: under which key Redis holds the state of a check, and in which
// slot of a Cluster.
//
//	prefix:{first}|rest:policy:tag
//
// Only the first part of the key, the principal, stands in the hash tag, so all
// counters of one principal share a Redis Cluster slot. Neither tag nor policy
// contains a colon, so no two checks share a key by accident.

package shared

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/algorithms/internal/step"
)

const maxPart = 128 // bytes of a key's part that are stored as they are

// storedKey implements [Limiter.StoredKey].
func (r *redisLayer) storedKey(check algorithms.Check) string {
	var it step.Item
	if check.Item(&it) != nil || it.Limit.Row.Refill == step.Never {
		return ""
	}
	return r.stored(&it.Key)
}

// stored returns the stored key of k.
func (r *redisLayer) stored(k *step.Key) string {
	dst := append(make([]byte, 0, 2*maxPart), r.prefix...)
	part, rest, more := strings.Cut(k.Text, "|")
	dst = append(appendPart(append(dst, '{'), part), '}')
	for more {
		part, rest, more = strings.Cut(rest, "|")
		dst = appendPart(append(dst, '|'), part)
	}
	dst = append(append(dst, ':'), k.Policy...)
	return string(append(append(dst, ':'), k.Scope.Tag...))
}

// appendPart appends a part of a key, or '#' and its digest if it cannot be in
// a stored key. A part that begins with '#' is digested, too, because otherwise
// a client could make it equal another part's digest.
func appendPart(dst []byte, part string) []byte {
	if part != "" && len(part) <= maxPart && part[0] != '#' && !strings.ContainsFunc(part, odd) {
		return append(dst, part...)
	}
	sum := sha256.Sum256([]byte(part))
	dst = append(dst, '#')
	return base64.RawURLEncoding.AppendEncode(dst, sum[:])
}

// odd reports whether a character may not be in a stored key: it is no printable ASCII, or it is a space or a brace.
func odd(c rune) bool { return c <= ' ' || c > '~' || c == '{' || c == '}' }

const clusterSlots = 16384

// hashTag returns the text in the braces of a stored key; it is never empty.
func hashTag(key string) string {
	_, tag, _ := strings.Cut(key, "{")
	tag, _, _ = strings.Cut(tag, "}")
	return tag
}

// slotOf returns the slot of a hash tag: its CRC-16/XMODEM modulo 16384.
// https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/
func slotOf(tag string) uint16 {
	var crc uint16
	for i := range len(tag) {
		crc ^= uint16(tag[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % clusterSlots
}
