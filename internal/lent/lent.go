// Package lent knows the types of this module whose methods keep no string that they receive. Package ratelimit
// lends such types keys whose bytes it uses again. Every other type receives keys of its own.
//
// A marker method would not do: a type that embeds one of ours would have the method, too.
package lent

import "reflect"

// types are written while packages are initialized, and only read afterwards.
var types = make(map[reflect.Type]bool)

// To says that values of exactly the type T keep no string that their methods receive. Only the initialization of a
// package may call it.
func To[T any]() { types[reflect.TypeFor[T]()] = true }

// Fits reports whether To has been called for the dynamic type of v.
func Fits(v any) bool { return types[reflect.TypeOf(v)] }
