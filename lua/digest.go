package lua

// Digest is the SHA-1 of the script, by which EVALSHA names it. It is a
// constant, because a process that allows only FIPS 140 algorithms cannot
// compute it.
const Digest = "0ce4c140e41b33b05785745ad15376108244a9aa"
