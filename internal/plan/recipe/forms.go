package recipe

import (
	"fmt"

	"builder/internal/base/diag"
)

// Forms returns the settings of the points of one recipe. Points for which the same
// variants hold have the same settings, and share them.
type Forms struct {
	recipe *Recipe
	made   map[string]Settings // by the variants that hold
}

// NewForms returns the settings of the points of r.
func NewForms(r *Recipe) *Forms { return &Forms{r, map[string]Settings{}} }

// For is [Recipe.For]. Change no list or map of the settings: others share it.
func (f *Forms) For(axes map[string]string) (Settings, error) {
	holding := make([]byte, len(f.recipe.Variants))
	for i, v := range f.recipe.Variants {
		if v.When.Holds(axes) {
			holding[i] = 1
		}
	}
	if known, ok := f.made[string(holding)]; ok {
		return known, nil
	}
	merged := f.recipe.Settings
	for i, v := range f.recipe.Variants {
		if holding[i] == 0 {
			continue
		}
		both, clash := merge(merged, v.Settings)
		if clash != "" {
			return Settings{}, diag.At(f.recipe.index.At(fmt.Sprintf("variants[%d]", i)), "two settings for %s where %v", clash, v.When).
				WithHint("a key has one value in a cell: remove it from the recipe, and set it in variants that together cover every cell")
		}
		merged = both
	}
	f.made[string(holding)] = merged
	return merged, nil
}
