// Package gates is a folder of packages and holds no code. Its packages hold the
// questions about an artifact and their answers. They do not hold anything that
// builds or publishes.
package gates
