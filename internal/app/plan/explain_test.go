package plan

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"builder/internal/evidence/signing"
	"builder/internal/gates/gate"
	"builder/internal/plan/catalogue"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// The key in a plan is that of the entry that a run builds, with its input cells.
func TestPlanKeys(t *testing.T) {
	cat := must.Get(catalogue.Load("", catalogue.Names{Gates: gate.Promises()}))(t)
	s := Setup{Catalogue: cat, Keys: signing.Keys{Home: t.TempDir()}}
	keys := 0
	for _, r := range cat.Recipes {
		of := Selection{Recipe: r, Filter: matrix.Filter{}}
		p := must.Get(Explain(t.Context(), s, of))(t)
		if p.Cells[0].Key == "" {
			continue
		}
		drafts := must.Get(of.drafts(cat))(t)
		entries := must.Get(s.Sources.Assembler(cat, s.Keys.Home).Entries(t.Context(), r, of.Filter, drafts))(t)
		if keys++; entries[len(entries)-1].Key() != p.Cells[0].Key {
			t.Errorf("%s: the plan says %s, the entry is %s", p.Cells[0].ID, p.Cells[0].Key, entries[len(entries)-1].Key())
		}
	}
	check.That(t, keys >= 5, "%d keys", keys)
}

// An interrupt ends a plan and an audit, which may have hundreds of cells, and leaves
// nothing to print.
func TestPlanIsInterrupted(t *testing.T) {
	cat := must.Get(catalogue.Load("", catalogue.Names{Gates: gate.Promises()}))(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	s := Setup{Catalogue: cat, Keys: signing.Keys{Home: t.TempDir()}}
	p, err := Explain(ctx, s, Selection{Recipe: cat.Recipes[0], Filter: matrix.Filter{}})
	check.That(t, errors.Is(err, context.Canceled) && p.Recipe == "", "%v, %v", p.Recipe, err)
	reports, err := Audit(ctx, s, cat.Recipes, false)
	check.That(t, errors.Is(err, context.Canceled) && reports == nil, "%v, %v", reports, err)
}

// The plan of a cell for ROCm and of one for CUDA shows the same gates, and the channel
// stable asks both for the same gates on GPUs. The exceptions depend on the recipe, not
// on the vendor.
func TestBothVendorsAreAskedTheSame(t *testing.T) {
	cat := must.Get(catalogue.Load("", catalogue.Names{Gates: gate.Promises()}))(t)
	s := Setup{Catalogue: cat, Keys: signing.Keys{Home: t.TempDir()}}
	planned := func(name string, pairs ...string) PlannedCell {
		t.Helper()
		i := slices.IndexFunc(cat.Recipes, func(r *recipe.Recipe) bool { return r.Name == name })
		f := matrix.Filter{}
		for _, pair := range pairs {
			axis, value, _ := strings.Cut(pair, "=")
			f[axis] = value
		}
		p, err := Explain(t.Context(), s, Selection{Recipe: cat.Recipes[i], Filter: f})
		must.Hold(t, err == nil && len(p.Cells) == 1, "%v: %d cells, %v", pairs, len(p.Cells), err)
		return p.Cells[0]
	}
	wheels := []string{"gpu-allreduce", "gpu-train-step", "gpu-upstream-tests"}
	libraries := []string{"nccl-tests", "transport", "busbw"}
	for _, pair := range []struct {
		rocm, cuda PlannedCell
		onGPUs     []string
	}{
		{planned("horovod", "rocm=5.7", "tensorflow=2.13.0"), planned("horovod", "cuda=12", "tensorflow=2.18.1"), wheels},
		{planned("horovod", "rocm=7.0", "torch=2.8.0", "tensorflow=none"), planned("horovod", "cuda=13", "torch=2.11.0"), wheels},
		{planned("rccl", "rocm=6.4", "arch=gfx942", "functions=full", "version=6.4.3"), planned("nccl", "cuda=13.0", "version=2.28.9", "arch=sm_90", "functions=full", "rdma=dlopen"), libraries},
	} {
		rocm, cuda, onGPUs := pair.rocm, pair.cuda, pair.onGPUs
		check.That(t, slices.Equal(rocm.OnGPUs, onGPUs) && slices.Equal(cuda.OnGPUs, onGPUs) && rocm.Stable+cuda.Stable == "",
			"on GPUs %s is asked %v, %s is asked %v; %q %q", rocm.ID, rocm.OnGPUs, cuda.ID, cuda.OnGPUs, rocm.Stable, cuda.Stable)
		for _, name := range gate.Names() {
			// The floor of glibc is stated for images of Debian, and the size for cells that
			// were built.
			if name == "glibc-floor" || name == "size" {
				continue
			}
			check.That(t, slices.Contains(rocm.Gates, name) == slices.Contains(cuda.Gates, name),
				"gate %s: %s has %v, %s has %v", name, rocm.ID, rocm.Gates, cuda.ID, cuda.Gates)
		}
	}
}

// The same request of another recipe opens the axes that --unproven opens.
func TestTheRequestOfAnotherRecipe(t *testing.T) {
	cat := must.Get(catalogue.Load("", catalogue.Names{Gates: gate.Promises()}))(t)
	r := must.Get(recipe.Find(cat.Recipes, "nccl"))(t)
	of := must.Get(Select(r, matrix.Filter{"cuda": "12.8"}, nil))(t)
	for _, asked := range []Selection{of, of.Covering()} {
		again := must.Get(asked.Under(r))(t)
		check.Same(t, "filter", asked.Filter, again.Filter)
		check.Same(t, "unproven", asked.Unproven, again.Unproven)
	}
}
