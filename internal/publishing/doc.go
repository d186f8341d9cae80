// Package publishing is a folder of packages and holds no code. Its packages publish
// artifacts and take published ones: publish, the index, uploads, results of other
// hosts. They do not decide whether an artifact is good: gates and evidence do.
package publishing
