// Text formats other than Common Log Format: HAProxy, Envoy and Istio, the load balancers
// of AWS, gin, the columns of W3C, and key=value pairs.

package replay

import (
	"strconv"
	"strings"
	"time"
)

// layouts are the times of all formats. A fraction may follow the seconds.
var layouts = [...]string{
	time.RFC3339, "2006-01-02T15:04:05Z0700", commonTime, "2006/01/02 15:04:05", "2006/01/02 - 15:04:05",
	"2006-01-02 15:04:05", "2006-01-02T15:04:05", "02/Jan/2006:15:04:05",
}

// parseTime returns the µs since 1970, or false if the text has none of the layouts. Most
// lines have the time of the line before, or its layout.
func (p *parser) parseTime(text string) (at int64, ok bool) {
	if text == p.text && text != "" {
		return p.at, true
	}
	for i := -1; i < len(layouts); i++ {
		layout := p.layout
		if i >= 0 {
			layout = layouts[i]
		}
		if t, err := time.Parse(layout, text); err == nil && layout != "" {
			p.layout, p.text, p.at = layout, text, t.UnixMicro()
			return p.at, true
		}
	}
	return 0, false
}

// fill reads the facts of a line that is text.
func (p *parser) fill(l *entry, at, client, request, status, took string, unit time.Duration) error {
	var ok bool
	if l.Time, ok = p.parseTime(at); !ok {
		return errTime
	}
	l.Address, l.number, l.unit = client, took, unit
	if err := l.setRequest(request); err != nil {
		return err
	}
	return l.setStatus(status)
}

// words cuts a text at spaces that are not in quotes. It removes the quotes.
func words(text string) (all []string) {
	for text = strings.TrimLeft(text, " "); text != ""; text = strings.TrimLeft(text, " ") {
		end, skip := strings.IndexByte(text, ' '), 0
		if text[0] == '"' {
			end, skip = closingQuote(text), 1
		}
		if end < 0 {
			return append(all, text)
		}
		all, text = append(all, text[skip:end]), text[end+skip:]
	}
	return all
}

// parseHAProxy reads the format of option httplog:
//
//	192.0.2.1:5555 [10/Oct/2026:13:55:36.250] front back/server 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 "GET / HTTP/1.1"
func (p *parser) parseHAProxy(l *entry, before, rest string) error {
	if err := l.setClient(before, "-"); err != nil {
		return err
	}
	fields, request, ok := strings.Cut(rest[25:], `"`)
	end := strings.IndexByte(request, '"')
	all := words(fields)
	if !ok || end < 0 || len(all) < 4 {
		return errRequest
	}
	took := strings.TrimPrefix(all[2][strings.LastIndexByte(all[2], '/')+1:], "+")
	status := strings.Replace(all[3], "-1", "0", 1) // -1: no response
	return p.fill(l, rest[:24], l.Address, request[:end], status, took, time.Millisecond)
}

// parseEnvoy reads the default formats of Envoy and of Istio:
//
//	[2026-10-10T11:55:36.250Z] "GET / HTTP/2" 200 - 0 5 26 25 "192.0.2.1" "agent" "id" "host" "10.0.0.9:80"
func (p *parser) parseEnvoy(l *entry, rest string) error {
	at, rest, _ := strings.Cut(rest, "]")
	switch all := words(rest); len(all) {
	case 12:
		return p.fill(l, at, all[7], all[0], all[1], all[5], time.Millisecond)
	case 21: // Istio's also have the address that Envoy has chosen
		return p.fill(l, at, all[18], all[0], all[1], all[8], time.Millisecond)
	}
	return errForm
}

// parseGin reads the lines of gin's logger:
//
//	[GIN] 2026/10/10 - 11:55:36 | 200 |     26.1ms |       192.0.2.1 | GET      "/"
func (p *parser) parseGin(l *entry, rest string) error {
	const parts = 5
	all := strings.SplitN(strings.TrimPrefix(rest, "GIN] "), "|", parts)
	if len(all) < parts {
		return errForm
	}
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	method, path, _ := strings.Cut(all[4], " ")
	path = strings.TrimLeft(path, " ")
	if plain, err := strconv.Unquote(path); err == nil {
		path = plain
	}
	return p.fill(l, all[0], all[3], method+" "+path, all[1], all[2], 0)
}

// parseQuoted reads the formats that have no bracket before the request:
//
//	https 2026-10-10T11:55:36.250000Z app/lb/1 192.0.2.1:5555 10.0.0.9:80 0.000 0.026 0.000 200 200 34 366 "GET https://h:443/ HTTP/2.0" ...
//	time=2026-10-10T11:55:36.250Z level=INFO msg=request ip=192.0.2.1 method=GET path=/ status=200 duration=26ms
func (p *parser) parseQuoted(l *entry, text string) error {
	if strings.Contains(text, "=") && p.parsePairs(l, text) == nil && l.Method != "" {
		return nil
	}
	*l = entry{Cost: -1}
	return p.parseALB(l, words(text))
}

// parseALB reads a line of an Application Load Balancer.
func (p *parser) parseALB(l *entry, all []string) error {
	const created = 21 // when the request came; the second word is when it was answered
	if len(all) <= created || len(all[0]) > len("grpcs") {
		return errForm
	}
	var took float64
	for _, part := range all[5:8] {
		seconds, err := strconv.ParseFloat(part, 64)
		if took += max(0, seconds); err != nil { // -1: the target has not answered
			return errForm
		}
	}
	return p.fill(l, all[created], all[3], all[12], all[8], strconv.FormatFloat(took, 'f', -1, 64), time.Second)
}

// parsePairs reads key=value pairs, whose keys are those of JSON lines. Other words do not matter.
func (p *parser) parsePairs(l *entry, text string) error {
	for text = strings.TrimLeft(text, " "); text != ""; text = strings.TrimLeft(text, " ") {
		end := strings.IndexAny(text, "= ")
		if end < 0 {
			return nil
		}
		name, value, pair := text[:end], "", text[end] == '='
		if text = text[end+1:]; !pair {
			continue
		}
		if quoted, err := strconv.QuotedPrefix(text); err == nil {
			value, _ = strconv.Unquote(quoted)
			text = text[len(quoted):]
		} else {
			value, text, _ = strings.Cut(text, " ")
		}
		if err := p.set(l, name, value); err != nil {
			return err
		}
	}
	return nil
}

// parseDirective reads a line of the head of a W3C log, as CloudFront and IIS write it.
func (p *parser) parseDirective(text string) error {
	name, value, ok := strings.Cut(text, ":")
	if !ok || strings.Contains(name, " ") {
		return errForm
	}
	if name == "#Fields" {
		p.columns = strings.Fields(value)
	}
	return errNone
}

// parseColumns reads a line by the names of its columns.
func (p *parser) parseColumns(l *entry, text string) error {
	values := strings.Fields(text)
	if strings.Contains(text, "\t") {
		values = strings.Split(text, "\t")
	}
	if len(values) != len(p.columns) {
		return errForm
	}
	date, query := "", ""
	for i, name := range p.columns {
		value := values[i]
		switch name {
		case "date":
			date = value
		case "time":
			value = date + " " + value
		case "cs-uri-query":
			query = value
		case "time-taken":
			if !strings.Contains(value, ".") {
				value += "ms" // IIS's; CloudFront's are seconds
			}
		}
		if err := p.set(l, name, value); err != nil {
			return err
		}
	}
	if query != "" && query != "-" {
		l.Path += "?" + query
	}
	return nil
}
