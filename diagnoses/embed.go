// Package diagnoses holds the known failures that come with builder, by topic.
// The types, the loader and the search are in internal/plan/diagnose.
package diagnoses

import "embed"

// FS holds *.yaml and schema.json.
//
//go:embed *.yaml *.json
var FS embed.FS
