package recipe

// A Wheelhouse describes the promises of a stack: wheels of several cells and their
// run-time dependencies, installed together. It does not occur in recipes;
// [builder/internal/plan/stack] creates it.
type Wheelhouse struct {
	Format   int           `json:"format"`             // of the manifest and of the list of requirements
	Agree    []string      `json:"agree,omitempty"`    // axes and facts with the same value in all parts
	Provided []Provided    `json:"provided,omitempty"` // projects provided by the platform
	Loads    []LibraryLoad `json:"loads,omitempty"`
	Profile  string        `json:"profile,omitempty"` // text of the run-time environment
}

// A LibraryLoad promises which library a process gets: the one in the wheel of a part.
type LibraryLoad struct {
	Import  string `yaml:"import" json:"import" jsonschema:"description=module that a process imports"`
	Library string `yaml:"library" json:"library" jsonschema:"description=file name of the library that the process then maps"`
	Project string `yaml:"project" json:"project" jsonschema:"description=Python project of the part's wheel with this library; it is never taken from the index"`
}

// Provided is a Python project provided by the platform. It is neither a part nor
// downloaded from the index.
type Provided struct {
	Project string `yaml:"project" json:"project"`
	Because string `yaml:"because" json:"because"`
}
