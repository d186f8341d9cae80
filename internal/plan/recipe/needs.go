package recipe

import "slices"

// An Input names one cell of another recipe. Values of its axes may contain names in
// double braces. An axis without a value gets the one preferred by the other recipe.
type Input struct {
	Recipe string            `yaml:"recipe" json:"recipe" jsonschema:"description=name of the other recipe"`
	Axes   map[string]string `yaml:"axes,omitempty" json:"axes,omitempty" jsonschema:"description=values of its axes; together with its preferences they choose one cell"`
}

// A Variable is a setting of the artifact's run-time environment, with its reason.
type Variable struct {
	Name    string `yaml:"name" json:"name" jsonschema:"description=name of the variable"`
	Value   string `yaml:"value" json:"value" jsonschema:"description=its value; without characters that need quotes"`
	Because string `yaml:"because" json:"because" jsonschema:"description=the reason that is printed beside it"`
	Source  string `yaml:"source" json:"source" jsonschema:"format=uri,description=where the fact stands"`
}

// InputRecipes returns the names of the recipes used as inputs of r, sorted and
// distinct.
func (r *Recipe) InputRecipes() []string {
	var names []string
	for _, in := range each(r, func(s Settings) []Input { return s.Inputs }) {
		names = append(names, in.Recipe)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
