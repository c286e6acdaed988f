// JSON lines, whose fields have the names that servers commonly use.

package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// A field reads the value of a member of a JSON object: the text of a string, or any
// other value as it is written.
type field func(l *entry, value string) error

// fields are the fields by their names in lower case, or as they are written. The first
// name of a row is ours; the others are those of nginx, Caddy, Traefik, Envoy and logging
// libraries.
var fields = named(map[string]field{
	"time ts timestamp @timestamp time_local time_iso8601 msec start_time startutc": (*entry).setTime,
	"address remote_addr remote_ip client_ip remote_host clientip clienthost ip":    func(l *entry, v string) error { l.Address = v; return nil },
	"user key user_id remote_user clientusername":                                   (*entry).setUser,
	"method request_method requestmethod verb":                                      func(l *entry, v string) error { l.Method = v; return nil },
	"path uri request_uri requestpath url":                                          func(l *entry, v string) error { l.Path = v; return nil },
	"request":                                                                       (*entry).setRequest,
	"status status_code response_code downstreamstatus code":                        func(l *entry, v string) error { return l.setStatus([]byte(v)) },
	"duration request_time latency elapsed":                                         (*entry).setDuration,
	"Duration":                                                                      (*entry).setNanoseconds, // Traefik's
	"cost":                                                                          (*entry).setCost,
	"settled":                                                                       func(l *entry, v string) error { return json.Unmarshal([]byte(v), &l.Settled) },
})

func named(rows map[string]field) map[string]field {
	all := make(map[string]field)
	for names, f := range rows {
		for name := range strings.FieldsSeq(names) {
			all[name] = f
		}
	}
	return all
}

func (l *entry) setUser(value string) error {
	if value != "-" && value != "null" {
		l.User = value
	}
	return nil
}

// setRequest reads a request line, as nginx's $request.
func (l *entry) setRequest(value string) error {
	method, path, ok := strings.Cut(value, " ")
	if !ok {
		return errRequest
	}
	path, _, _ = strings.Cut(path, " ")
	l.Method, l.Path = method, path
	return nil
}

// setTime reads a time of RFC 3339 or of Common Log Format, or Unix time in seconds,
// milliseconds, microseconds or nanoseconds. Of two times, as Traefik logs them, the one
// with fractions of a second counts.
func (l *entry) setTime(value string) error {
	for _, layout := range [...]string{time.RFC3339Nano, commonTime} {
		if t, err := time.Parse(layout, value); err == nil {
			if at := t.UnixMicro(); at%micros != 0 || l.Time%micros == 0 {
				l.Time = at
			}
			return nil
		}
	}
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || !(n > 0 && n < 1e19) {
		return errTime
	}
	for n > 1e11 { // later than the year 5138 in seconds
		n /= 1000
	}
	l.Time = int64(math.Round(n * 1e6))
	return nil
}

// maxDuration bounds how often a replay renews the hold of a request.
const maxDuration = 30 * 24 * time.Hour

// setDuration reads seconds, or a duration as Go writes it.
func (l *entry) setDuration(value string) error {
	if value == "-" || value == "null" {
		return nil
	}
	d, err := time.ParseDuration(value)
	if err != nil {
		var s float64
		s, err = strconv.ParseFloat(value, 64) // ParseDuration knows no 5e-05
		if !(s < maxDuration.Seconds()) {
			s = -1
		}
		d = time.Duration(math.Round(s * float64(time.Second)))
	}
	if err != nil || d < 0 || d > maxDuration {
		return fmt.Errorf("the duration %q is not in seconds", value)
	}
	l.Duration = d
	return nil
}

// setNanoseconds reads a whole number of nanoseconds, or what setDuration reads.
func (l *entry) setNanoseconds(value string) error {
	if _, err := strconv.ParseUint(value, 10, 64); err == nil {
		value += "ns"
	}
	return l.setDuration(value)
}

func (l *entry) setCost(value string) error {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("the cost %q is not a count", value)
	}
	l.Cost = n
	return nil
}

var errJSON = errors.New("no JSON object")

// parseJSON reads an object. The entry keeps no part of the text.
func (l *entry) parseJSON(text string) error {
	if err := l.setMembers(text); err != nil {
		return err
	}
	all := l.Address + l.User + l.Method + l.Path // one allocation
	for _, field := range []*string{&l.Address, &l.User, &l.Method, &l.Path} {
		*field, all = all[:len(*field)], all[len(*field):]
	}
	return nil
}

// setMembers reads the members of an object, and of its member "request". It reads no
// other level, because decoding into a map takes five times as long.
func (l *entry) setMembers(text string) error {
	rest := skipSpace(text[1:])
	if rest == "}" {
		return nil
	}
	for {
		name, after, err := cutString(rest)
		if err != nil {
			return err
		}
		if after = skipSpace(after); after == "" || after[0] != ':' {
			return errJSON
		}
		text := skipSpace(after[1:])
		value, after, err := cutValue(text)
		if err == nil {
			err = l.set(name, value, text[0] == '{')
		}
		if err != nil {
			return err
		}
		switch after = skipSpace(after); {
		case after == "}":
			return nil
		case after == "" || after[0] != ',':
			return errJSON
		}
		rest = skipSpace(after[1:])
	}
}

// set reads the value of a member.
func (l *entry) set(name, value string, object bool) error {
	if object && name == "request" { // Caddy's
		return l.setMembers(value)
	}
	read := fields[name]
	if read == nil {
		read = fields[strings.ToLower(name)]
	}
	if read == nil {
		return nil
	}
	return read(l, value)
}

func skipSpace(s string) string { return strings.TrimLeft(s, " \t\r\n") }

// cutString cuts a string off the text.
func cutString(text string) (value, rest string, err error) {
	if text == "" || text[0] != '"' {
		return "", "", errJSON
	}
	plain := true
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"' && plain:
			return text[1:i], text[i+1:], nil
		case c == '"':
			err := json.Unmarshal([]byte(text[:i+1]), &value)
			return value, text[i+1:], err
		case c == '\\':
			plain = false
			i++
		case c < ' ' || c > '~': // Unmarshal judges it
			plain = false
		}
	}
	return "", "", errJSON
}

// cutValue cuts a value off the text.
func cutValue(text string) (value, rest string, err error) {
	if text == "" {
		return "", "", errJSON
	}
	if text[0] == '"' {
		return cutString(text)
	}
	end := strings.IndexAny(text, ",}")
	if text[0] == '{' || text[0] == '[' {
		d := json.NewDecoder(strings.NewReader(text))
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return "", "", errJSON
		}
		end = int(d.InputOffset())
	}
	if end < 0 {
		return "", "", errJSON
	}
	value, rest = strings.TrimRight(text[:end], " \t\r\n"), text[end:]
	if !json.Valid([]byte(value)) {
		return "", "", errJSON
	}
	return value, rest, nil
}
