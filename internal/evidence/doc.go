// Package evidence is a folder of packages and holds no code. Its packages hold what
// is signed about an artifact: statements, SBOM, keys, the record of proven cells.
// They do not hold a verdict: gates give it.
package evidence
