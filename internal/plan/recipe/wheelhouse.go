package recipe

// A Wheelhouse describes the promises of a stack: wheels of several cells and their
// run-time dependencies, installed together. It does not occur in recipes;
// [builder/internal/plan/stack] creates it.
type Wheelhouse struct {
	Format   int        `json:"format"`             // of the manifest and of the list of requirements
	Agree    []string   `json:"agree,omitempty"`    // axes and facts with the same value in all parts
	Provided []Provided `json:"provided,omitempty"` // projects provided by the platform
	Profile  string     `json:"profile,omitempty"`  // text of the run-time environment
}

// Provided is a Python project provided by the platform. It is neither a part nor
// downloaded from the index.
type Provided struct {
	Project string `yaml:"project" json:"project"`
	Because string `yaml:"because" json:"because"`
}
