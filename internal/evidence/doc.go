// Package evidence is a folder of packages and holds no code. Its packages hold the
// signed evidence about an artifact: statements, SBOM, keys. They do not decide
// about an artifact: gates give the verdicts.
package evidence
