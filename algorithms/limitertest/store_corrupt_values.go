// Corrupt values of the store. The instant in most texts is the epoch of traces, so that nothing but the one oddity is
// wrong.

package limitertest

import (
	"fmt"
	"strings"
)

// A state in a string is an instant in µs with the units in three digits, or t:n:f.

var garbageTexts = []planted{
	{"", "nothing"},
	{"garbage", "letters"},
	{"nan", "what tonumber may take for a number"},
	{"inf", "a number without bound"},
	{"-inf", "a negative number without bound"},
	{"1e17", "an exponent"},
	{"0x10", "hexadecimal"},
	{" 5 ", "spaces that tonumber ignores"},
	{"5x", "a number and a letter"},
	{"0", "too short"},
	{"-1", "too short and negative"},
	{"1763729430000000", "an instant without units"},
	{"1763729430.000007", "a fraction"},
	{"176372943000000007", "a digit too few"},
	{"17637294300000000070", "a digit too many"},
	{"1763729430000000 07", "a space in the middle"},
	{"176372943000000000x", "a letter at the end"},
	{" 1763729430000000007", "a space before"},
	{"1763729430000000007\n", "a line feed after"},
	{"1763729430000000007\x00", "a NUL after"},
	{"+1763729430000000007", "a sign"},
	{"-763729430000000007", "a minus sign at the right length"},
	{"1763729430000000:7", "two fields"},
	{"1763729430000000:7:0:0", "four fields"},
	{"1763729430000000:7:0:0:0", "five fields"},
	{":7:0", "no instant"},
	{"1763729430000000::0", "no units"},
	{"1763729430000000:7:", "no third field"},
	{"::", "three empty fields"},
	{"a:b:c", "three fields of letters"},
	{"-1763729430000000:7:0", "a negative instant"},
	{"1763729430000000:-7:0", "negative units"},
	{"1763729430000000:7.5:0", "a fraction of a unit"},
	{"1763729430000000:7:0 ", "a space after the third field"},
	{"1763729430000000:0x7:0", "hexadecimal units"},
	{"1763729430000000:7:nan", "a third field that is no number"},
	{"1763729430000000:1e1:0", "units with an exponent"},
	{"9007199254740992:7:0", "an instant of 2^53, beyond which doubles are not exact"},
	{"1763729430000000:9007199254740992:0", "2^53 units"},
	{"1763729430000000:7:9007199254740992", "a third field of 2^53"},
	{"99999999999999999999:7:0", "an instant beyond 64 bits"},
	{"1763729430000000:7:" + strings.Repeat("0", 40), "a field longer than any number"},
	{strings.Repeat("9", 1000), "a long number"},
	{strings.Repeat("7:", 1000), "a thousand fields"},
}

var lyingTexts = []planted{
	{"1763729430000000007", "the truth, for comparison"},
	{"-1763729430000000007", "the truth of a new key"},
	{"1763729430000000:7:0", "the truth in the longer form"},
	{"9999999999999999999", "the greatest short state: far in the future"},
	{"0000000000000000999", "an instant of 0"},
	{"0000000000000000000", "all zeros"},
	{"1763729430000000999", "far more units than two bursts"},
	{"1763729430000000000", "no units, which no limiter stores"},
	{"9007199254740993001", "an instant beyond 2^53"},
	{"1763729430000000:9007199254740991:9007199254740991", "the most units and the greatest third field"},
	{"9007199254740991:999:1", "the latest instant"},
	{"9007199254740991:9007199254740991:9007199254740991", "the greatest of everything"},
	{"0:1:1", "an instant of 0 in the longer form"},
	{"0:0:0", "zeros in the longer form"},
	{"1763729430000000:0:5", "no units, with a third field"},
	{"1763729430000000:0:9007199254740991", "no units, with the greatest third field"},
	{"1763729430000000:5:9007199254740991", "some units, with the greatest third field"},
	{"9007199254740991:0:9007199254740991", "the latest instant without units"},

	{"1763729430100000:10:0", "the future, within the tolerance of 100 ms"},
	{"1763729430100001:10:0", "the future, beyond the tolerance by a µs"},
}

// The state of a log is a list: a header with the newest instant and the sum of units, then entries from old to new.
// Spaces separate the elements.

// garbageLists have a header that does not parse.
var garbageLists = []planted{
	{"garbage 1763729430000000007", "letters"},
	{"nan", "what tonumber may take for a number, and no entries"},
	{"inf inf", "numbers without bound"},
	{"-1 1763729430000000007", "a negative header"},
	{"176372943000000000 1763729430000000007", "a digit too few"},
	{"1763729430000000:7 1763729430000000007", "two fields"},
	{"17637294300000000070 1763729430000000007", "a digit too many"},
	{"9007199254740992:7:0 1763729430000000007", "an instant of 2^53, beyond which doubles are not exact"},
	{strings.Repeat("x ", 100) + "x", "a hundred letters"},
	{strings.Repeat("9", 1000) + " 1763729430000000007", "a long number"},
}

// lyingLists have a header that parses.
var lyingLists = []planted{
	{"1763729430000000007 1763729430000000003 1763729430000000004", "the truth, for comparison"},

	{"1763729430000000007", "no entries"},
	{"1763729430000000001 1763729430000000007 1763729430000000002", "fewer units in the header than in the entries"},
	{"1763729430000000009 1763729430000000001", "more units in the header than in the entries"},
	{"1763729430000000000 1763729430000000007", "no units in the header"},

	{"1763729430000000007 x y z", "entries of letters"},
	{"1763729430000000007 1763729430000000003 x", "a letter as the newest entry"},
	{"1763729430000000007 1763729430000000003 nan 1763729430000000004", "an entry that is no number"},
	{"1763729430000000007 1763729430000000000 1763729430000000000", "entries without units"},
	{
		"1763729430000000010 1763729430000000:9007199254740991:0 1763729430000000:9007199254740991:0",
		"entries of far too many units",
	},
	{"1763729430000000:9007199254740991:0 1763729430000000001", "a header of far too many units"},

	{"1763729430000000010 1763729440000000005 1763729420000000005", "entries out of order"},
	{"1763729430000000010 9999999999999999005 1763729420000000005", "an entry from the future before an older one"},
	{"9999999999999999010 9999999999999999005 9999999999999999005", "everything from the future"},

	{"1763729400000000005 1763729429000000005", "a header older than its entry"},
	{"1763729429000000005 1763729300000000002 1763729310000000003", "a header newer than its entries"},
	{"0000000000000000005 1763729430000000005", "a header with the instant 0"},
	{"1763729430000000:5:7 1763729430000000:5:7", "a third field, which logs do not have"},

	{"1763729430000000999" + strings.Repeat(" 1763729430000000001", 999), "a thousand entries, in the header"},
	{"1763729430000000010" + strings.Repeat(" 1763729429000000001", 999), "more entries than in the header"},
	{"1763729430000000010" + strings.Repeat(" x", 999), "a thousand letters"},
	{"1763729430000000010" + strings.Repeat(" 1763729360000000001", 999), "a thousand entries that have expired"},
	{"1763729430000000010 1763729360000000001" + strings.Repeat(" x", 300), "letters behind an expired entry"},
}

// Concurrent requests are a sorted set, of fields score/member. The score is the instant (µs) from which a unit is held.
// Any member is a unit that is held, whatever its name.

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
