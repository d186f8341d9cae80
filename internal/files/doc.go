// Package files is a folder of packages and holds no code. Its packages hold the
// formats: wheels, ELF, archives, and how two files differ. Package linux knows which
// systems load a library. They have no dependency on recipes or the network.
package files
