package assemble_test

import (
	"slices"
	"strings"
	"testing"

	"builder/internal/gates/gate"
	"builder/internal/plan/assemble"
	"builder/internal/plan/catalogue"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func builtIn(t *testing.T) catalogue.Catalogue {
	t.Helper()
	cat, err := catalogue.Load("", catalogue.Names{Gates: gate.Promises()})
	must.Succeed(t, err)
	return cat
}

// Every cell of the built-in catalogue is locked, or lacks only the pins listed here.
func TestEveryCellIsLockedOrSaysWhyNot(t *testing.T) {
	cat := builtIn(t)
	asm := &assemble.Assembler{Locks: cat.Locks(t.TempDir())}
	// Only AMD's registry has the digests of the images. The trees of GPT-SoVITS and RCCL
	// 6.4.3 are only on GitHub. Remove a pin from this list when it becomes known.
	waiting := map[string][]string{
		"horovod":    {"image rocm-6.0-ubuntu-22.04", "image rocm-6.1-ubuntu-22.04"},
		"rccl":       {"image rocm-6.0-ubuntu-22.04", "source rccl 6.4.3"},
		"gpt-sovits": {"source gpt-sovits 20250228v3", "source gpt-sovits 20250422v4", "source gpt-sovits 20250606v2pro"},
	}
	for _, r := range cat.Recipes {
		drafts, err := assemble.Choose(cat, r, matrix.Everything(r))
		must.Succeed(t, err)
		c, err := asm.Cover(t.Context(), r.Name, drafts)
		check.That(t, err == nil && len(c.Lacks) == 0, "%s lacks %s, %v", r.Name, strings.Join(c.Lacks, "; "), err)
		locked := len(drafts)
		var names []string
		for _, u := range c.Unstated {
			name, why, _ := strings.Cut(u.Why, ": ")
			names, locked = append(names, name), locked-u.Cells
			check.That(t, strings.Contains(why, "has the digest of"), "%s: %s", r.Name, u.Why)
		}
		check.That(t, locked > 0 && slices.Equal(names, waiting[r.Name]),
			"%s: %d cells of %d are locked, the others wait for %q", r.Name, locked, len(drafts), names)
	}
}

// A missing pin other than an image is an error of the lock.
func TestCoverageNamesWhatIsMissing(t *testing.T) {
	cat := builtIn(t)
	i := 0
	for cat.Recipes[i].Name != "horovod" {
		i++
	}
	r := *cat.Recipes[i]
	r.Requires.Run = append(r.Requires.Run, "nothing-has-this")
	asm := &assemble.Assembler{Locks: cat.Locks(t.TempDir())}
	drafts, err := assemble.Choose(cat, &r, matrix.Filter{"rocm": "5.7,6.0"})
	must.Succeed(t, err)
	c, err := asm.Cover(t.Context(), "horovod", drafts)
	if err != nil || len(c.Unstated) != 1 || c.Unstated[0].Cells != 1 || len(c.Lacks) != 1 || !strings.Contains(c.Lacks[0], "nothing-has-this") {
		t.Errorf("%+v, %v", c, err)
	}
}

// For open axes the preferred cell is built on images with digests, if such a cell
// exists.
func TestPreferenceIsForImagesWithADigest(t *testing.T) {
	cat := builtIn(t)
	for _, r := range cat.Recipes {
		all, err := assemble.Choose(cat, r, matrix.Everything(r))
		must.Succeed(t, err)
		for _, axis := range r.Axes {
			for _, value := range axis.Values {
				cells, _, err := matrix.Expand(r, matrix.Filter{axis.Name: value})
				if err != nil {
					continue // the value exists only to explain why it is unavailable
				}
				chosen, err := lock.NewDraft(cells[0], cat.LockInputs())
				must.Succeed(t, err)
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
