package lua

// Digest is the SHA-1 of the script, by which EVALSHA names it. It is a
// constant, because a process that allows only FIPS 140 algorithms cannot
// compute it.
const Digest = "f3e53e1995610bacda62ef6adbe0db86cdb505b4"
