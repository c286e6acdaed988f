package lua

// Digest is the SHA-1 of the script, by which EVALSHA names it. It is a
// constant, because a process that allows only FIPS 140 algorithms cannot
// compute it.
const Digest = "6e8a9ffe3b30c7ca216ea1eee31ffc47fab39800"
