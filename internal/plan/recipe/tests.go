package recipe

import "builder/internal/base/diag"

// Tests are upstream's own tests. The artifact must pass them in a clean container
// without a network and, for the gate on GPUs, in an environment of the user. Each file
// runs in its own process, or in one process per rank.
//
// Entries for the same file and expression in several settings are merged, so a cell can
// add its own known failures.
type Tests struct {
	Launcher string     `yaml:"launcher,omitempty" json:"launcher,omitempty" jsonschema:"enum=horovodrun,description=what starts the ranks of a file; without one there is one process. horovodrun starts them by expect.launcher"`
	Ranks    int        `yaml:"ranks,omitempty" json:"ranks,omitempty" jsonschema:"description=processes of each file; 1 without a launcher"`
	Files    []TestFile `yaml:"files,omitempty" json:"files,omitempty" jsonschema:"description=files of the tests' tree that pytest runs"`
}

// A TestFile is one file of upstream's tests, or the cases of it that match Select. A
// case that fails on one rank alone leaves the other ranks waiting, so it needs an entry
// of its own.
type TestFile struct {
	File   string `yaml:"file" json:"file" jsonschema:"description=path in the tests' tree"`
	Select string `yaml:"select,omitempty" json:"select,omitempty" jsonschema:"description=expression as of pytest's -k; without it the whole file. A file can be listed once for each expression"`
	// On is [OnCPU] or [OnGPUs] if the entry has a sense on ranks of that kind alone.
	On string `yaml:"on,omitempty" json:"on,omitempty" jsonschema:"enum=cpu,enum=gpus,description=run it on ranks of this kind alone: without GPUs (cpu) or with GPUs (gpus)"`
	// Controller is the controller of horovodrun for this entry. Empty means that of the
	// cell's launcher.
	Controller string `yaml:"controller,omitempty" json:"controller,omitempty" jsonschema:"enum=mpi,enum=mpich,enum=gloo,description=controller of horovodrun; without it that of the cell"`

	Seconds int     `yaml:"seconds,omitempty" json:"seconds,omitempty" jsonschema:"description=what the file took when somebody measured it; six times that and five minutes are its limit"`
	Quick   *Quick  `yaml:"quick,omitempty" json:"quick,omitempty" jsonschema:"description=what of the file runs with --tests quick; without it the file runs with --tests full alone"`
	Known   []Known `yaml:"known,omitempty" json:"known,omitempty" jsonschema:"description=cases that fail for a known reason; one that begins to pass is a failure of the gate"`
}

// Quick is the part of a file run by --tests quick.
type Quick struct {
	Select  string `yaml:"select,omitempty" json:"select,omitempty" jsonschema:"description=expression as of pytest's -k; without it the whole file"`
	Seconds int    `yaml:"seconds" json:"seconds" jsonschema:"description=what the part took when somebody measured it"`
}

// Known lists test cases that fail for one known reason.
type Known struct {
	Cases   []string `yaml:"cases" json:"cases" jsonschema:"minItems=1,description=names of test functions"`
	Because string   `yaml:"because" json:"because" jsonschema:"description=why they fail"`
	Issue   string   `yaml:"issue" json:"issue" jsonschema:"format=uri,description=where the failure is described"`
	// On restricts the failure to ranks without a GPU ("cpu") or to ranks with GPUs
	// ("gpus"). Empty means both.
	On string `yaml:"on,omitempty" json:"on,omitempty" jsonschema:"enum=cpu,enum=gpus,description=where they fail: on ranks without GPUs (cpu) or with GPUs (gpus); without it on both"`
}

// The values of [Known.On] and [TestFile.On].
const (
	OnCPU  = "cpu"
	OnGPUs = "gpus"
)

// QuickSeconds returns the duration of the quick tests as stated by the recipe.
func (t Tests) QuickSeconds() (seconds int) {
	for _, f := range t.Files {
		if f.Quick != nil {
			seconds += f.Quick.Seconds
		}
	}
	return seconds
}

// FullSeconds returns the duration of all files as stated by the recipe.
func (t Tests) FullSeconds() (seconds int) {
	for _, f := range t.Files {
		seconds += f.Seconds
	}
	return seconds
}

// Fault returns the first problem of a cell's tests, or nil.
func (t Tests) Fault(from Origin) error {
	switch {
	case len(t.Files) == 0:
		return nil
	case from.Kind != Git:
		return diag.Errorf(diag.Usage, "expect.tests needs tests-from of kind git, the origin of upstream's tests")
	case t.Launcher == "" && t.Ranks > 1:
		return diag.Errorf(diag.Usage, "expect.tests: %d ranks need a launcher", t.Ranks)
	case t.Launcher != "" && t.Ranks < 1:
		return diag.Errorf(diag.Usage, "expect.tests: launcher %s needs ranks", t.Launcher)
	}
	for _, f := range t.Files {
		if f.Seconds <= 0 {
			return diag.Errorf(diag.Usage, "expect.tests: %s needs seconds", f.File)
		}
	}
	return from.Fault()
}
