// Package input is a folder of packages and holds no code. Its packages fetch and keep
// input bytes: the store, Debian packages, Python indexes, git and registries. They do
// not decide how the bytes are used.
package input
