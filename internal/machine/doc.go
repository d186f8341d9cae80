// Package machine is a folder of packages and holds no code. Its packages describe a
// host, its network and its GPUs, and measure them. Gates are in internal/gates.
package machine
