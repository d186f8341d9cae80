package lock_test

import (
	"slices"
	"testing"

	"builder/internal/plan/lock"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// The tree of upstream's tests has its own pin, and so do their packages. A cell
// without tests has neither.
func TestTestsArePinned(t *testing.T) {
	const tests = "expect:\n  tests: {files: [{file: test/a.py, seconds: 5}]}\n"
	all := drafts(t,
		"from: {kind: sdist}\n", "from: {kind: sdist}\ntests-from: {kind: git, repository: \"https://git.invalid/tiny\", tag: \"v{{version}}\", under: test}\n",
		"  run: [numpy]\n", "  run: [numpy]\n  tests: [pytest]\n", "expect:\n", tests)
	f := tinyLock()
	missing := f.Missing(all)
	check.Same(t, "it lacks", "source tiny-tests 1.0; source tiny-tests 1.1; Python 3.11 with pytest; Python 3.12 with pytest", missing.String())
	whys := missing.Unstated()
	check.That(t, len(whys) == 2, "unstated: %q", whys)
	pinned := source(pin("tiny-tests", "1.0", "e0"))
	pinned.Tag, pinned.Under, pinned.Commit = "v1.0", "test", "0123456789012345678901234567890123456789"
	f.Sources = append(f.Sources, pinned)
	f.Python = append(f.Python, lock.PythonPin{Python: "3.11", Requirements: []string{"pytest"}, Files: slices.Clone(f.Python[0].Files)})
	entries, err := lock.Assemble(all[:1], f, "p")
	must.Succeed(t, err)
	e := entries[0]
	check.That(t, e.Tests.SHA256 == pinned.SHA256 && e.Tests.Repository == "https://git.invalid/tiny" && len(e.TestWheels) == 1 && e.Source.Project == "tiny",
		"%+v, %+v", e.Tests, e.TestWheels)
	other := f
	other.Sources = slices.Clone(f.Sources)
	other.Sources[len(other.Sources)-1].Under = "other"
	check.That(t, !other.Missing(all[:1]).None(), "the pin of another folder is taken")
	folder := drafts(t, "from: {kind: sdist}\n", "from: {kind: git, repository: \"https://git.invalid/all\", tag: \"v{{version}}\", under: projects/tiny}\n")[0].Source
	check.That(t, folder.Root && folder.Under == "projects/tiny" && !e.Tests.Root,
		"the folder is not the root of the source, or that of the tests is: %+v, %+v", folder, e.Tests)
	plain, err := lock.Assemble(drafts(t)[:1], tinyLock(), "p")
	check.That(t, err == nil && plain[0].Tests.SHA256 == "" && plain[0].TestWheels == nil, "%+v, %v", plain, err)
}
