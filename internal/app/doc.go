// Package app holds what the verbs do. A [Session] is the state that the verbs of one
// invocation share. A request holds the arguments of one verb. A function such as [Run]
// takes both and returns a value. The package parses no flags and prints nothing:
// cmd/builder does both.
//
// The packages below it contain the catalogue, the assembly of entries, and the needs of
// cells.
package app
