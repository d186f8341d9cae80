// Package kit is a folder of packages and holds no code. Its packages are used
// only by tests: golden files, pages, browsers, the rules of this repository. They hold
// no code of the program.
package kit
