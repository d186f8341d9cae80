// Package recipes holds builder's own recipes and their locks: data for users to read
// and edit. The types and loaders are in internal/plan/recipe and internal/plan/lock.
package recipes

import "embed"

// FS holds *.yaml, *.lock.json and schema.json.
//
//go:embed *.yaml *.json
var FS embed.FS
