package lua

// Digest is the SHA-1 of the script, by which EVALSHA names it. It is a
// constant, because a process that allows only FIPS 140 algorithms cannot
// compute it.
const Digest = "f8cadfd3f98d705fa5b2a5729be36cffa4fe12b8"
