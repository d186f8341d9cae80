// Package app holds what the verbs do. A [Session] is what the verbs of one invocation
// share; a request is what one verb was asked for; a function such as [Run] takes both
// and returns a value. The package knows no flags and prints nothing: cmd/builder does.
//
// The packages below it hold the configuration, the catalogue, the assembly of entries,
// what cells need, the checks of a host, and the command line as data.
package app
