package lua

// Digest is the SHA-1 of the script, by which EVALSHA names it. It is a
// constant, because a process that allows only FIPS 140 algorithms cannot
// compute it.
const Digest = "5dd78ea124390a9eddc7cf58301d3fafd1f2c4cb"
