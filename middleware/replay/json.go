// JSON lines, whose fields have the names that servers commonly use.

package replay

import (
	"cmp"
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
	"cost":                     func(_ *parser, l *entry, v string) error { return l.setCost(v) },
	"settled":                  func(_ *parser, l *entry, v string) error { return json.Unmarshal([]byte(v), &l.Settled) },
	"log message":              func(_ *parser, l *entry, v string) error { l.inner = v; return nil },
})

// objects are the members whose members are those of a request.
const objects = " request httprequest req res response "

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
func (p *parser) parseJSON(l *entry, text string) error {
	if err := p.setMembers(l, text); err != nil {
		return err
	}
	all := l.Address + l.User + l.Method + l.Path // one allocation
	for _, field := range []*string{&l.Address, &l.User, &l.Method, &l.Path} {
		*field, all = all[:len(*field)], all[len(*field):]
	}
	return nil
}

// setMembers reads the members of an object, and of its members in objects. It reads no
// other level, because decoding into a map takes five times as long.
func (p *parser) setMembers(l *entry, text string) error {
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
			err = p.set(l, name, value, text[0] == '{')
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
func (p *parser) set(l *entry, name, value string, object bool) error {
	read := fields[name]
	if read == nil || object {
		lower := strings.ToLower(name)
		if object {
			if strings.Contains(objects, " "+lower+" ") {
				return p.setMembers(l, value)
			}
			return nil
		}
		read = fields[lower]
	}
	if read == nil {
		return nil
	}
	return read(p, l, value)
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
