package lua

// Digest is the SHA-1 of the script, by which EVALSHA names it. It is a
// constant, because a process that allows only FIPS 140 algorithms cannot
// compute it.
const Digest = "7c989ae8d7ba6e4169734aba5f2e6ad91b6d95e2"
