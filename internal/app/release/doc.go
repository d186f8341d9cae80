// Package release holds the verb publish: it verifies wheels and puts them at their
// destination.
package release
