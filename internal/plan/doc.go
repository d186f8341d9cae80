// Package plan is a folder of packages and holds no code. Its packages determine the
// cells and the inputs of each: recipes, patches, images, the matrix, locks. They build
// nothing.
package plan
