// Package base is a folder of packages and holds no code. Its packages are used by
// every group: diagnostics, strict decoding, retries, safe file access. They contain
// nothing about wheels, recipes or GPUs.
package base
