// Package patches holds builder's own patches: one folder for each distribution,
// applied in the order of their file names. The types and the loader are in
// internal/plan/patch.
package patches

import "embed"

// FS holds <distribution>/*.yaml, their diffs, and schema.json.
//
//go:embed gpt-sovits horovod nccl ray rccl *.json
var FS embed.FS
