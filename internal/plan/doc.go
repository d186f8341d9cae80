// Package plan is a folder of packages and holds no code. Its packages hold which
// cells exist and what goes into each: recipes, patches, images, the matrix, locks.
// They do not hold a build.
package plan
