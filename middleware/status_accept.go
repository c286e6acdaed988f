package middleware

import (
	"mime"
	"strings"
)

// quality returns how much a client wants a media type, in thousandths, by its
// Accept fields (RFC 9110, section 12.5.1): that of the most specific range that
// the type is in; 0 if it is in none, or not wanted. Without fields everything
// is. Elements that are not well-formed count as absent.
func quality(accept []string, mediaType string) int {
	if len(accept) == 0 {
		return 1000
	}
	kind, _, _ := strings.Cut(mediaType, "/")
	best, specific := 0, -1
	for _, line := range accept {
		for line != "" {
			var element string
			element, line = cutElement(line)
			wanted, parameters, err := mime.ParseMediaType(element)
			if err != nil {
				continue
			}
			q, ok := weight(parameters)
			if strings.EqualFold(parameters["charset"], "utf-8") {
				delete(parameters, "charset") // as ours are
			}
			if !ok || len(parameters) > 0 {
				continue // a range of more special kinds than ours
			}
			if s := specificity(wanted, mediaType, kind); s > specific {
				best, specific = q, s
			}
		}
	}
	return best
}

// specificity returns how special a range is that has the type; -1 if it has not.
func specificity(wanted, mediaType, kind string) int {
	switch wanted {
	case mediaType:
		return 2
	case kind + "/*":
		return 1
	case "*/*":
		return 0
	default:
		return -1
	}
}

// cutElement cuts the first element off a list, whose quoted strings may have
// commas.
func cutElement(list string) (element, rest string) {
	quoted := false
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			return list[:i], list[i+1:]
		}
	}
	return list, ""
}

// weight returns the weight among parameters, which it takes out: one digit, 0
// or 1, and up to three decimals. False means that it is something else.
func weight(parameters map[string]string) (thousandths int, ok bool) {
	text, ok := parameters["q"]
	delete(parameters, "q")
	if !ok {
		return 1000, true
	}
	whole, decimals, _ := strings.Cut(text, ".")
	if whole != "0" && whole != "1" || len(decimals) > 3 {
		return 0, false
	}
	for _, digit := range (decimals + "000")[:3] {
		if digit < '0' || digit > '9' {
			return 0, false
		}
		thousandths = thousandths*10 + int(digit-'0')
	}
	thousandths += 1000 * int(whole[0]-'0')
	return thousandths, thousandths <= 1000
}
