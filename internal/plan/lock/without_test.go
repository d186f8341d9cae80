package lock_test

import (
	"slices"
	"strings"
	"testing"

	"builder/internal/input/pypi"
	"builder/internal/plan/lock"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
)

// The projects provided by the platform are part of the need: another list has another
// pin.
func TestWhatIsProvidedIsPartOfTheQuestion(t *testing.T) {
	d := drafts(t)[0]
	d.Settings.Requires = recipe.Requirements{Run: []string{"accelerate"}, Without: []string{"torch", "ray"}}
	missing := lock.File{}.Missing([]lock.Draft{d})
	i := slices.IndexFunc(missing.Python, func(n lock.PythonPin) bool { return len(n.Without) > 0 })
	if i < 0 || !slices.Equal(missing.Python[i].Without, []string{"ray", "torch"}) || !strings.HasSuffix(missing.Python[i].String(), "with accelerate without ray torch") {
		t.Fatalf("%+v", missing.Python)
	}
	need := missing.Python[i]
	pin := lock.PythonPin{Python: need.Python, Requirements: need.Requirements, Without: need.Without, Files: []pypi.File{}}
	answered := lock.File{Python: []lock.PythonPin{pin}}
	if left := answered.Missing([]lock.Draft{d}).Python; slices.ContainsFunc(left, func(n lock.PythonPin) bool { return len(n.Without) > 0 }) {
		t.Errorf("it is answered, and asked: %+v", left)
	}
	other := pin
	other.Without = []string{"torch"}
	if left := (lock.File{Python: []lock.PythonPin{other}}).Missing([]lock.Draft{d}).Python; !slices.ContainsFunc(left, func(n lock.PythonPin) bool { return len(n.Without) == 2 }) {
		t.Errorf("another list answers it: %+v", left)
	}
	both := answered.With(lock.File{Python: []lock.PythonPin{other}})
	check.That(t, len(both.Python) == 2, "one pin takes the place of the other: %+v", both.Python)
}
