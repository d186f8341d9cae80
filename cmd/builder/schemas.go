package main

import (
	"builder/cmd/builder/config"
	"builder/internal/gates/gate"
	"builder/internal/plan/diagnose"
	"builder/internal/plan/image"
	"builder/internal/plan/patch"
	"builder/internal/plan/profile"
	"builder/internal/plan/recipe"
	"builder/internal/plan/stack"
	"builder/internal/view/progress"
)

// schemas maps each name to the Go type of a file or record format with a JSON schema.
var schemas = map[string]any{
	"recipe": &recipe.Recipe{}, "stack": &stack.Stack{}, "image": &image.Catalogue{}, "patch": &patch.Patch{}, "diagnosis": &diagnose.File{}, "config": &config.File{},
	"profile":     &profile.Profile{},
	"environment": &profile.Environment{}, // the output of profile --format json
	"progress":    &progress.Event{},      // the output of --progress json
}

// schemaOf returns the schema of a type. Gates define a part of a recipe's.
func schemaOf(value any) []byte {
	if _, ok := value.(*recipe.Recipe); ok {
		return recipe.SchemaWith(gate.Promises())
	}
	return recipe.Schema(value)
}
