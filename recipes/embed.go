// Package recipes holds the recipes that come with builder and their locks:
// data for humans to read and edit. The types and loaders are in
// internal/plan/recipe and internal/plan/lock.
package recipes

import "embed"

// FS holds *.yaml, *.lock.json, schema.json, and as *.tar.xz the archives of commits
// that are small and not for every host to reach. The locks hold their digests.
//
//go:embed *.yaml *.json *.tar.xz
var FS embed.FS
