// Corrupt lists. The state of a log is a header with the newest instant and the sum of units, then entries from old
// to new. Spaces separate the elements.

package limitertest

import "strings"

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
