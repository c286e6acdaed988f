package lua

// Digest is the SHA-1 of the script, by which EVALSHA names it. It is a
// constant, because a process that allows only FIPS 140 algorithms cannot
// compute it.
const Digest = "b252e4e1c60aa8e1417aefc90b7ebb2e028177cb"
