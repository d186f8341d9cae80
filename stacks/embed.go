// Package stacks holds builder's own stacks and their locks: cells of several recipes
// for use together. The types and the loader are in internal/plan/stack.
package stacks

import "embed"

// FS holds *.yaml, *.lock.json and schema.json.
//
//go:embed *.yaml *.json
var FS embed.FS
