// Package app is a folder of packages and holds no code. Its packages hold what the verbs
// do, one for each family of verbs. They parse no flags and print nothing: cmd/builder
// does both. The tests beside this file are about several families at once.
package app
