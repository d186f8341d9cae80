// Package testutil is a folder of packages and holds no code. Its packages hold what
// only tests use: golden files, pages, browsers, the rules of this repository. They
// do not hold code of the program.
package testutil
