package algorithms

// StoredKey returns the key under which Redis holds the state of a check, such
// as penstock:{usr=42}:orders:tb, for operators who look there. It is empty for
// a check that is invalid, and for the limit of nobody, which has no state.
func (r *Redis) StoredKey(c Check) string {
	if c.validate() != nil || c.Limit.algorithm == algorithmNobody {
		return ""
	}
	return string(appendStored([]byte(r.prefix), &c))
}

// StoredKey is that of its [Redis.StoredKey].
func (s *Stack) StoredKey(c Check) string { return s.redis.StoredKey(c) }
