// Package base is a folder of packages and holds no code. Its packages hold what
// every group uses: diagnostics, strict decoding, retries, safe file access. They do
// not hold anything about wheels, recipes or GPUs.
package base
