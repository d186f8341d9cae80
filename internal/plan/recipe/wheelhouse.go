package recipe

// A Wheelhouse is what a stack promises: wheels of several cells, and what they
// need at run time, that are installed together. It stands in no recipe; a stack
// is read by [builder/internal/plan/stack].
type Wheelhouse struct {
	Format   int        `json:"format"`             // of the manifest and of the list of requirements
	Agree    []string   `json:"agree,omitempty"`    // axes and facts that are of one value in all parts
	Provided []Provided `json:"provided,omitempty"` // what the platform brings
	Profile  string     `json:"profile,omitempty"`  // text of the run-time environment
}

// Provided is a Python project that the platform brings, and therefore neither a
// part nor taken from the index.
type Provided struct {
	Project string `yaml:"project" json:"project"`
	Because string `yaml:"because" json:"because"`
}
