// Slots of Redis Cluster, in which keys with the same hash tag share a slot.

package shared

import "strings"

const clusterSlots = 16384

// hashTag returns what stands in the braces of a stored key; it is never empty.
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

// slot returns the slot of a stored key; 0 unless the client is a Cluster's.
func (r *redisLayer) slot(key string) uint16 {
	if !r.cluster {
		return 0
	}
	return slotOf(hashTag(key))
}
