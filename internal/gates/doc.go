// Package gates is a folder of packages and holds no code. Its packages check artifacts
// and return verdicts. They build and publish nothing.
package gates
