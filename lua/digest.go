package lua

// Digest is the SHA-1 of the script, by which EVALSHA names it. It is a
// constant, because a process that allows only FIPS 140 algorithms cannot
// compute it.
const Digest = "09c954575a22728a968c0e2a90cee747915a78e9"
