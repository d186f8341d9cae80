// Package profiles holds builder's own run-time environments, one for each stack. The
// types, the loader and the choice are in internal/plan/profile.
package profiles

import "embed"

// FS holds *.yaml and schema.json.
//
//go:embed *.yaml *.json
var FS embed.FS
