// JSON lines, whose fields have the names that servers commonly use.

package replay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A field reads the value of a member of a JSON object: the text of a string, or any
// other value as it is written.
type field func(p *parser, l *entry, value string) error

// fields are the fields by their names in lower case, or as they are written. The first
// name of a row is ours; the others are those of nginx, Caddy, Traefik, Envoy, Google's
// load balancers, logging libraries and W3C's columns.
var fields = named(map[string]field{
	"time ts timestamp @timestamp time_local time_iso8601 msec start_time startutc":                            (*parser).setTime,
	"address client_ip clientip client_addr ip remoteip c-ip real_ip http_x_real_ip downstream_remote_address": address(3),
	"clienthost": func(_ *parser, l *entry, v string) error { // Traefik's, of trusted proxies
		v, _, _ = strings.Cut(v, ",")
		return address(3)(nil, l, v)
	},
	"remote_addr remote_ip remote_host remoteaddr remoteaddress clientaddr": address(2),
	"x_forwarded_for http_x_forwarded_for forwarded_for":                    address(1),
	"user key user_id remote_user clientusername cs-username":               func(_ *parser, l *entry, v string) error { return l.setUser(v) },
	"method request_method requestmethod cs-method verb":                    func(_ *parser, l *entry, v string) error { l.Method = v; return nil },
	"path uri request_uri requestpath requesturl cs-uri-stem url":           func(_ *parser, l *entry, v string) error { l.Path = v; return nil },
	"request": func(_ *parser, l *entry, v string) error { return l.setRequest(v) },
	"status status_code statuscode downstreamstatus sc-status code": func(_ *parser, l *entry, v string) error { return l.setStatus(v) },
	"response_code": func(_ *parser, l *entry, v string) error { // Envoy's, beside durations in ms
		l.unit = cmp.Or(l.unit, time.Millisecond)
		return l.setStatus(v)
	},
	"duration latency elapsed": number(0),
	"latency_human":            number(time.Nanosecond),
	"request_time time-taken":  number(time.Second),
	"responsetime":             number(time.Millisecond),
	"Duration":                 number(time.Nanosecond), // Traefik's
	"cost":                     (*parser).setCost,
	"settled":                  func(_ *parser, l *entry, v string) error { return json.Unmarshal([]byte(v), &l.Settled) },
	"log message":              func(_ *parser, l *entry, v string) error { l.inner = v; return nil },
})

// objects are the members whose members are those of a request.
var objects = []string{"request", "httprequest", "req", "res", "response"}

func named(rows map[string]field) map[string]field {
	all := make(map[string]field)
	for names, f := range rows {
		for name := range strings.FieldsSeq(names) {
			all[name] = f
		}
	}
	for _, name := range []string{"duration", "latency", "elapsed"} {
		for ending, unit := range units {
			all[name+"_"+ending], all[name+ending] = number(unit), number(unit)
		}
	}
	return all
}

// address returns a field of an address. Of several, the one with the highest rank is the
// client's. Two different ones of one rank leave it in doubt.
func address(rank int) field {
	return func(_ *parser, l *entry, value string) error {
		switch {
		case value == "" || value == "-" || value == "null" || rank < l.rank || rank == l.rank && value == l.Address:
		case rank == l.rank:
			l.Address += "," + value
		default:
			l.Address, l.rank = value, rank
		}
		return nil
	}
}

// number returns a field of a duration. A known unit wins over one that is not.
func number(unit time.Duration) field {
	return func(_ *parser, l *entry, value string) error {
		if unit != 0 || l.number == "" {
			l.number, l.unit = value, cmp.Or(unit, l.unit)
		}
		return nil
	}
}

func (l *entry) setUser(value string) error {
	if value != "-" && value != "null" {
		l.User = value
	}
	return nil
}

// setTime reads a time of any layout, or Unix time in seconds, milliseconds, microseconds
// or nanoseconds. Of two times, as Traefik logs them, the one with fractions of a second
// counts.
func (p *parser) setTime(l *entry, value string) error {
	if strings.Contains(value, ":") {
		// no number: an error of ParseFloat would take an allocation
	} else if n, err := strconv.ParseFloat(value, 64); err == nil {
		if !(n > 0 && n < 1e19) {
			return errTime
		}
		for n > 1e11 { // later than the year 5138 in seconds
			n /= 1000
		}
		l.Time = int64(math.Round(n * 1e6))
		return nil
	}
	at, ok := p.parseTime(value)
	if !ok {
		return errTime
	}
	if at%micros != 0 || l.Time%micros == 0 {
		l.Time = at
	}
	return nil
}

func (p *parser) setCost(l *entry, value string) (err error) {
	if l.Cost, err = strconv.ParseInt(value, 10, 64); err != nil || l.Cost < 0 {
		return fmt.Errorf("the cost %q is not a count", value)
	}
	return nil
}

var errJSON = errors.New("no JSON object")

// parseJSON reads the members of an object, and of its members in objects. It reads no other level, because decoding
// into a map takes five times as long.
func (p *parser) parseJSON(l *entry, text []byte) error {
	if !json.Valid(text) {
		return errJSON
	}
	for rest := text[1:]; ; {
		if rest = bytes.TrimLeft(rest, ", \t\r\n"); rest[0] == '}' {
			return nil
		}
		var name, value []byte
		name, rest = cutValue(rest)
		value, rest = cutValue(bytes.TrimLeft(rest, ": \t\r\n"))
		var err error
		if value[0] != '{' {
			err = p.set(l, plain(name), plain(value))
		} else if slices.Contains(objects, strings.ToLower(plain(name))) {
			err = p.parseJSON(l, value)
		}
		if err != nil {
			return err
		}
	}
}

// cutValue cuts a value or a name off the text, which is valid JSON in an object.
func cutValue(text []byte) (value, rest []byte) {
	quoted, depth := false, 0
	for i, escaped := 0, false; ; i++ {
		switch c := text[i]; {
		case escaped:
			escaped = false
		case quoted:
			escaped, quoted = c == '\\', c != '"'
		case depth == 0 && strings.IndexByte(":,} \t\r\n", c) >= 0:
			return text[:i], text[i:]
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
	}
}

// plain returns the text of a string, or any other value as it is written.
func plain(value []byte) (text string) {
	if value[0] != '"' {
		return string(value)
	}
	if bytes.IndexByte(value, '\\') < 0 {
		return string(value[1 : len(value)-1])
	}
	_ = json.Unmarshal(value, &text) // it is valid
	return text
}

// set reads the value of a field, if a replay needs it.
func (p *parser) set(l *entry, name, value string) error {
	read := fields[name]
	if read == nil {
		read = fields[strings.ToLower(name)]
	}
	if read == nil {
		return nil
	}
	return read(p, l, value)
}
