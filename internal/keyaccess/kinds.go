package keyaccess

// The kinds of package keyfunc's own keys, which begin their texts. The kind of a Header has a dot and the
// name of the field after it.
const (
	IP     = "ip"
	User   = "usr"
	Route  = "rt"
	Const  = "const"
	Header = "hdr"
)

// Kinds are all of them: a Custom has none of these.
var Kinds = []string{IP, User, Route, Const, Header}

// IsPublic reports whether the values of a kind come from the configuration. So they tell no clients apart, and
// operators see them as they are.
func IsPublic(kind string) bool { return kind == Route || kind == Const }
