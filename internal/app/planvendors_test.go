package app

import (
	"slices"
	"strings"
	"testing"

	"builder/internal/app/catalogue"
	"builder/internal/gates/gate"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
)

// The plan of a cell for ROCm and of one for CUDA shows the same gates, and the channel
// stable asks both for the same gates on GPUs. The exceptions depend on the recipe, not
// on the vendor.
func TestBothVendorsAreAskedTheSame(t *testing.T) {
	cat, err := catalogue.Load("", catalogue.Taken{})
	if err != nil {
		t.Fatal(err)
	}
	s := &Session{Catalogue: cat, Home: t.TempDir()}
	i := slices.IndexFunc(cat.Recipes, func(r *recipe.Recipe) bool { return r.Name == "horovod" })
	planned := func(pairs ...string) PlannedCell {
		t.Helper()
		f := matrix.Filter{}
		for _, pair := range pairs {
			name, value, _ := strings.Cut(pair, "=")
			f[name] = value
		}
		p, err := s.plan(PlanRequest{Selection: Selection{Recipe: cat.Recipes[i], Filter: f}})
		if err != nil || len(p.Cells) != 1 {
			t.Fatalf("%v: %d cells, %v", pairs, len(p.Cells), err)
		}
		return p.Cells[0]
	}
	onGPUs := []string{"gpu-allreduce", "gpu-train-step", "gpu-upstream-tests"}
	for _, pair := range [][2]PlannedCell{
		{planned("rocm=5.7", "tensorflow=2.13.0"), planned("cuda=12.4", "tensorflow=2.18.1")},
		{planned("rocm=7.0", "torch=2.8.0", "tensorflow=none"), planned("cuda=13.0", "torch=2.11.0")},
	} {
		rocm, cuda := pair[0], pair[1]
		if !slices.Equal(rocm.OnGPUs, onGPUs) || !slices.Equal(cuda.OnGPUs, onGPUs) || rocm.Stable+cuda.Stable != "" {
			t.Errorf("on GPUs %s is asked %v, %s is asked %v; %q %q", rocm.ID, rocm.OnGPUs, cuda.ID, cuda.OnGPUs, rocm.Stable, cuda.Stable)
		}
		for _, name := range gate.Names() {
			// The floor of glibc is stated for images of Debian, and the size for cells that
			// were built.
			if name == "glibc-floor" || name == "size" {
				continue
			}
			if slices.Contains(rocm.Gates, name) != slices.Contains(cuda.Gates, name) {
				t.Errorf("gate %s: %s has %v, %s has %v", name, rocm.ID, rocm.Gates, cuda.ID, cuda.Gates)
			}
		}
	}
}
