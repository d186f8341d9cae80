// Package input is a folder of packages and holds no code. Its packages hold where
// bytes come from: the store, Debian, Python indexes, git, registries. They do not
// hold what the bytes are used for.
package input
