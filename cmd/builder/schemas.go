package main

import (
	"builder/cmd/builder/config"
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
