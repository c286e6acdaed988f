// The items of RateLimit and RateLimit-Policy, in all dialects of the draft.

package headers

import "time"

// readItems reads the items of a field. An item that is malformed makes the field
// malformed; the other items count.
func (r *reading) readItems(key string, read func(*member) (ServiceLimit, bool)) []ServiceLimit {
	text, ok := r.line(key, ", ")
	if !ok {
		return nil
	}
	members, ok := parseList(text)
	if !ok {
		if l, ok := r.dictionary(key, text); ok {
			return []ServiceLimit{l}
		}
		r.malformed(key)
		return nil
	}
	limits := make([]ServiceLimit, 0, len(members))
	for i := range members {
		l, ok := read(&members[i])
		if ok {
			limits = append(limits, l)
		} else {
			r.malformed(key)
		}
	}
	return limits
}

// dictionary reads RateLimit of version 07 of the draft, e.g. limit=100, reset=5.
func (r *reading) dictionary(key, text string) (ServiceLimit, bool) {
	if key != keyRateLimit {
		return ServiceLimit{}, false
	}
	members, ok := parseDictionary(text)
	if !ok {
		return ServiceLimit{}, false
	}
	l, reset := unstated(), int64(-1)
	for _, m := range members {
		to := map[string]*int64{"limit": &l.Quota, "remaining": &l.Remaining, "reset": &reset}[m.key]
		if to == nil {
			continue
		}
		if m.value.kind != kindInteger || m.value.n < 0 {
			return ServiceLimit{}, false
		}
		*to = m.value.n
	}
	l.Within = secondsOf(reset)
	return l, l.Quota >= 0 && reset >= 0
}

// limitItem reads an item of RateLimit (section 4 of the draft), also with the
// names of the draft's next version: a and w stand for r and t.
func (r *reading) limitItem(m *member) (l ServiceLimit, ok bool) {
	l = unstated()
	if ok = r.name(m, &l); !ok {
		return l, false
	}
	remaining, within := "r", "t"
	if _, known := m.find("r"); !known {
		remaining, within = "a", "w"
	}
	seconds := int64(-1)
	ok = m.integer(remaining, 0, &l.Remaining) && m.integer(within, 0, &seconds)
	l.Within = secondsOf(seconds)
	return l, ok && l.Remaining >= 0
}

// policyItem reads an item of RateLimit-Policy (section 3 of the draft). Up to version
// 07 the quota was the item itself, without a name.
func (r *reading) policyItem(m *member) (l ServiceLimit, ok bool) {
	l = unstated()
	if m.value.kind == kindInteger {
		l.Quota, ok = m.value.n, true
	} else {
		ok = r.name(m, &l) && m.integer("q", 0, &l.Quota)
	}
	l.Unit = unitRequests
	if unit, has := m.find("qu"); has {
		if ok = ok && unit.kind == kindString; unit.s != "request" { // section 10.3 of the draft misspells it
			l.Unit = unit.s
		}
	}
	seconds := int64(0)
	ok = ok && m.integer("w", 1, &seconds)
	l.Window = secondsOf(seconds)
	return l, ok && l.Quota >= 0
}

// name reads the value of an item, and its partition key. Whether a name may be a
// Token is undecided in the draft, so name accepts it.
func (r *reading) name(m *member, l *ServiceLimit) bool {
	l.Name = m.value.s
	if partition, ok := m.find("pk"); ok {
		if partition.kind != kindBytes {
			return false
		}
		l.Partition = append([]byte{}, partition.s...)
	}
	return m.value.kind == kindString || m.value.kind == kindToken
}

// integer reads an optional parameter of at least the given number.
func (m *member) integer(key string, least int64, to *int64) bool {
	v, ok := m.find(key)
	if !ok {
		return true
	}
	*to = v.n
	return v.kind == kindInteger && v.n >= least
}

// secondsOf returns a number of seconds as a Duration, at most Never, and -1 for a
// negative number.
func secondsOf(n int64) time.Duration {
	switch {
	case n < 0:
		return -1
	case n > int64(Never/time.Second):
		return Never
	}
	return time.Duration(n) * time.Second
}
