// Package lab holds no code. Its folders are the programs that measure and trouble penstock, and those of COMING_FROM.md.
// CONTRIBUTING.md has the make target of each.
//
// The lab is a module of its own. The product's go.mod does not name the peers, and the product's ./... leaves the lab out.
package lab
