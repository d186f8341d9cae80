package assemble_test

import (
	"slices"
	"testing"

	"builder/internal/gates/gate"
	"builder/internal/input/pypi"
	"builder/internal/plan/assemble"
	"builder/internal/plan/catalogue"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func builtIn(t *testing.T) catalogue.Catalogue {
	t.Helper()
	return must.Get(catalogue.Load("", catalogue.Names{Gates: gate.Promises()}))(t)
}

// Every cell of the built-in catalogue is locked, or lacks only the pins listed here.
func TestEveryCellIsLockedOrSaysWhyNot(t *testing.T) {
	cat := builtIn(t)
	// Only AMD's registry has the digests of the images. The trees of GPT-SoVITS and RCCL
	// 6.4.3 are only on GitHub. Remove a pin from this list when it becomes known. A named
	// Python index is the user's to name, so no lock here has its files.
	waiting := map[string]string{
		"horovod":    "image rocm-6.0-ubuntu-22.04; image rocm-6.1-ubuntu-22.04",
		"rccl":       "source rccl 6.4.3; image rocm-6.0-ubuntu-22.04",
		"gpt-sovits": "source gpt-sovits 20250228v3; source gpt-sovits 20250422v4; source gpt-sovits 20250606v2pro",
	}
	for _, r := range cat.Recipes {
		drafts := must.Get(assemble.Choose(cat, r, matrix.Everything(r)))(t)
		f := must.Get(cat.Locks(t.TempDir()).Read(r.Name))(t)
		missing := f.Missing(drafts)
		public := missing
		public.Python = slices.DeleteFunc(slices.Clone(missing.Python), func(p lock.PythonPin) bool {
			return slices.ContainsFunc(p.Requirements, func(requirement string) bool { return pypi.IndexOf(requirement) != "" })
		})
		check.Same(t, "the lock of "+r.Name+" lacks", waiting[r.Name], public.String())
		check.That(t, missing.Else().None(), "%s: %s is stated elsewhere", r.Name, missing.Else())
		isLocked := func(d lock.Draft) bool { return f.Missing([]lock.Draft{d}).None() }
		check.That(t, slices.ContainsFunc(drafts, isLocked), "no cell of %s is locked", r.Name)
	}
}

// For open axes the preferred cell is built on images with digests, if such a cell
// exists.
func TestPreferenceIsForImagesWithADigest(t *testing.T) {
	cat := builtIn(t)
	for _, r := range cat.Recipes {
		all := must.Get(assemble.Choose(cat, r, matrix.Everything(r)))(t)
		for _, axis := range r.Axes {
			for _, value := range axis.Values {
				cells, _, err := matrix.Expand(r, matrix.Filter{axis.Name: value})
				if err != nil {
					continue // the value exists only to explain why it is unavailable
				}
				chosen := must.Get(lock.NewDraft(cells[0], cat.LockInputs()))(t)
				if !chosen.Image.Unstated() && !chosen.Runtime.Unstated() {
					continue
				}
				for _, d := range all {
					if d.Cell.Axes[axis.Name] == value && !d.Image.Unstated() && !d.Runtime.Unstated() {
						t.Errorf("%s --%s %s is %s, whose image has no digest, and could be %s", r.Name, axis.Name, value, chosen.Cell.ID, d.Cell.ID)
						break
					}
				}
			}
		}
	}
}
