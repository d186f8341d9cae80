// Package publishing is a folder of packages and holds no code. Its packages hold
// what leaves the host and what is taken from elsewhere: publish, the index,
// uploads, results of others. They do not hold a decision whether an artifact is
// good: gates and evidence make it.
package publishing
