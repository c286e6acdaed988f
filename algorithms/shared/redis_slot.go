package algorithms

import (
	"bytes"

	"github.com/redis/go-redis/v9"
)

// A placement says which keys one script may use.
type placement uint32

const (
	together placement = iota // any: one server
	bySlot                    // those of one slot: Redis Cluster
	byTag                     // those with one hash tag: a Ring
)

func placementOf(c Client) placement {
	switch c.(type) {
	case *redis.ClusterClient:
		return bySlot
	case *redis.Ring:
		return byTag
	default:
		return together
	}
}

// joins reports whether one script may use both keys.
func (p placement) joins(a, b string) bool {
	switch p {
	case bySlot:
		return slotOf(hashTag(a)) == slotOf(hashTag(b))
	case byTag:
		return hashTag(a) == hashTag(b)
	default:
		return true
	}
}

// hashTag returns what stands in the braces of a stored key; it is never empty.
func hashTag(key string) string {
	b := []byte(key)
	open := bytes.IndexByte(b, '{')
	return key[open+1 : open+bytes.IndexByte(b[open:], '}')]
}

const clusterSlots = 16384

// slotOf is Redis Cluster's: CRC-16/XMODEM of the hash tag, modulo 16384.
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
