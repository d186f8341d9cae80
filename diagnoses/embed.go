// Package diagnoses holds builder's own list of known failures, by topic. The types,
// the loader and the search are in internal/plan/diagnose.
package diagnoses

import "embed"

// FS holds *.yaml and schema.json.
//
//go:embed *.yaml *.json
var FS embed.FS
