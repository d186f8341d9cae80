package app

import (
	"builder/internal/app/config"
	"builder/internal/plan/diagnose"
	"builder/internal/plan/image"
	"builder/internal/plan/patch"
	"builder/internal/plan/profile"
	"builder/internal/plan/recipe"
	"builder/internal/plan/stack"
	"builder/internal/view/progress"
)

// Schemas are the types of the files that people write.
var Schemas = map[string]any{
	"recipe": &recipe.Recipe{}, "stack": &stack.Stack{}, "image": &image.Catalogue{}, "patch": &patch.Patch{}, "diagnosis": &diagnose.File{}, "config": &config.File{},
	"profile":     &profile.Profile{},
	"environment": &profile.Environment{}, // of profile --format json
	"progress":    &progress.Event{},      // of --progress json
}
