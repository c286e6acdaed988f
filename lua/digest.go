package lua

// Digest is the SHA-1 of the script, by which EVALSHA names it. It is a
// constant, because a process that allows only FIPS 140 algorithms cannot
// compute it.
const Digest = "47a88bc07cc340e0f064ac4008b9e339fdf78514"
