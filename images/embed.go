// Package images holds builder's own image catalogues. The types and the loader are in
// internal/plan/image.
package images

import "embed"

// FS holds *.yaml and schema.json.
//
//go:embed *.yaml *.json
var FS embed.FS
