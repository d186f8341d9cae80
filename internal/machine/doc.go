// Package machine is a folder of packages and holds no code. Its packages hold what
// a host, its network and its GPUs are, and what was measured on them. They do not
// hold a gate.
package machine
