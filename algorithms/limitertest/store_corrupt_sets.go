// Corrupt sorted sets, of fields score/member. The score is the instant (µs) from which a unit is held. Any member
// is a unit that is held, whatever its name.

package limitertest

import (
	"fmt"
	"strings"
)

var lyingSets = []planted{
	{"1763729430000000/a", "a member that no limiter would name so"},
	{"1763729430000000/a 1763729430000000/b 1763729429000000/c", "several of them"},
	{"0/a", "an instant of 0"},
	{"-1/a", "a negative instant"},
	{"-inf/a", "the lowest score"},
	{"inf/a", "the highest score"},
	{"-inf/a inf/b", "both"},
	{"1.5/a 1763729430000000.5/b", "fractions"},
	{"9007199254740993/a", "an instant beyond 2^53"},
	{"1e300/a 1763729430000000/b", "a score beyond any instant"},
	{"1763729430100000/a", "the future, within the tolerance of 100 ms"},
	{"1763729430100001/a", "the future, beyond the tolerance by a µs"},
	{"1763729490000000/a 1763729370000000/b 1763729370000001/c", "the future, and both sides of the window's start"},
	{members(9, epoch), "one unit short of the limit"},
	{members(10, epoch), "the limit"},
	{members(11, epoch-30*second), "one unit beyond the limit"},
	{members(600, epoch-60*second+5), "many units, a few of them ended"},
	{members(600, epoch+second), "many units from the future"},
}

// members returns units that are held from consecutive instants on.
func members(units int, first int64) string {
	var fields []string
	for i := range units {
		fields = append(fields, fmt.Sprintf("%d/unit%d", first+int64(i), i))
	}
	return strings.Join(fields, " ")
}
