// Package layout holds no code. Its test reads all Go files of the module and fails when one breaks a rule about
// where code lives: who may import whom, which folders there are, how packages are named.
//
// To change a rule, change the table in layout_test.go, and say in the commit why.
package layout
