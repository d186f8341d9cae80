// Package app is a folder of packages and holds no code. Its packages hold what the
// verbs do, without flags and printing: the configuration, the catalogue, the plan
// of a run, the checks of a host. They do not hold the command line library.
package app
