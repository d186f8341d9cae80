package gate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"builder/internal/files/elf"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

var deviceFunctions = Gate{
	Name: "device-functions",
	Asks: "the promised kernels, and the functions they call by table, are inside for every GPU target, and no forbidden ones",
	Remedy: "without its functions the library loads, starts and returns wrong sums without an error. Of Horovod, hipcc compiled no kernels for the target. Of NCCL, ONLY_FUNCS chose other functions, " +
		"or did not reach the build: its patterns are anchored at their end, so write \"AllReduce Sum f32 * *\"; \"AllReduce Sum f32\" chooses nothing",
	Promise: recipe.Promise{
		Of:   functionSettings{},
		Says: "functions for GPUs inside the compiled files",
	},
	Wants: states("device-functions"),
	check: checkDeviceFunctions,
}

type functionSettings struct {
	Kernels   []string `yaml:"kernels,omitempty" json:"kernels,omitempty" jsonschema:"description=names of kernels inside; each pattern must match at least one for every GPU target"`
	NoKernels []string `yaml:"no-kernels,omitempty" json:"no-kernels,omitempty" jsonschema:"description=no kernel may match"`
}

// Check implements [recipe.Checker].
func (f functionSettings) Check(problem recipe.Report) {
	problem.Patterns(".kernels", f.Kernels)
	problem.Patterns(".no-kernels", f.NoKernels)
}

func checkDeviceFunctions(ctx context.Context, s Subject) verdict.Verdict {
	promised := settings[functionSettings](s.Expect, "device-functions")
	return s.members().each(ctx, filesLike(s.Expect.Extensions), func(name string, r io.ReaderAt) (problems, seen []string, err error) {
		all, err := elf.DeviceFunctions(r)
		if err != nil {
			return nil, nil, err
		}
		problems, seen = inventoryOf(all).judge(promised, s.Expect.DeviceCode)
		return sentence(name, problems), sentence(name, seen), nil
	})
}

// sentence joins the statements about one file, if any.
func sentence(name string, parts []string) []string {
	if len(parts) == 0 {
		return nil
	}
	return []string{name + " " + strings.Join(parts, "; ")}
}

// inventory maps targets to the functions of a library.
type inventory map[string]functions

// functions holds the names for one target and the number of kernels among them.
type functions struct {
	kernels  int
	names    []string
	measured []elf.Function // the kernels for AMD GPUs, with their use
}

func (f functions) String() string {
	return fmt.Sprintf("%d kernels and %d other functions", f.kernels, len(f.names)-f.kernels)
}

func inventoryOf(all []elf.Function) inventory {
	inside := inventory{}
	for _, f := range all {
		of := inside[f.Target.String()]
		of.names = append(of.names, f.Name)
		if f.Kernel {
			of.kernels++
		}
		if f.Use.VGPRs > 0 {
			of.measured = append(of.measured, f)
		}
		inside[f.Target.String()] = of
	}
	return inside
}

func (inside inventory) judge(promised functionSettings, code []string) (problems, seen []string) {
	targets := inside.judged(code)
	if !slices.ContainsFunc(targets, func(t string) bool { return len(inside[t].names) > 0 }) {
		return []string{"holds no function for any GPU, except in PTX"}, nil
	}
	all := slices.Sorted(maps.Keys(inside))
	for _, target := range all {
		aside := ""
		if !slices.Contains(targets, target) {
			aside = ", not part of the promise"
		}
		seen = append(seen, fmt.Sprintf("holds for %s %v%s", target, inside[target], aside))
		seen = append(seen, inside[target].uses()...)
	}
	for _, target := range targets {
		problems = append(problems, inside.lacks(target, promised.Kernels)...)
	}
	for _, target := range all { // including PTX
		for _, pattern := range promised.NoKernels {
			if found := matching(pattern, inside[target].names); len(found) > 0 {
				problems = append(problems, fmt.Sprintf("has for %s %d functions of the forbidden %s: %s", target, len(found), pattern, some(found)))
			}
		}
	}
	return problems, seen
}

// maxUses is the number of kernels whose use the evidence names.
const maxUses = 5

// uses names what the largest kernels take of an AMD GPU: the first those that spill, then
// those with the most vector registers, which decide how many wavefronts run at a time.
func (f functions) uses() []string {
	slices.SortStableFunc(f.measured, func(a, b elf.Function) int {
		return cmp.Or(cmp.Compare(b.Use.Spilled, a.Use.Spilled), cmp.Compare(b.Use.VGPRs, a.Use.VGPRs), cmp.Compare(b.Use.LDS, a.Use.LDS))
	})
	var said []string
	for _, k := range f.measured[:min(len(f.measured), maxUses)] {
		said = append(said, fmt.Sprintf("its kernel %.200q takes %d VGPRs, %d SGPRs, and in bytes %d of LDS, %d of scratch and %d of code, and spills %d registers",
			k.Name, k.Use.VGPRs, k.Use.SGPRs, k.Use.LDS, k.Use.Scratch, k.Use.Code, k.Use.Spilled))
	}
	return said
}

// lacks names the patterns without a match for a target.
func (inside inventory) lacks(target string, patterns []string) []string {
	names := inside[target].names
	lacking := slices.DeleteFunc(slices.Clone(patterns), func(pattern string) bool { return len(matching(pattern, names)) > 0 })
	if len(lacking) == 0 {
		return nil
	}
	says := fmt.Sprintf("has no match in %s (%v) for %s", target, inside[target], strings.Join(lacking, ", "))
	if len(names) > 0 {
		says += ", but " + some(names)
	}
	return []string{says}
}

// judged returns the targets for the promised functions: the targets with functions and
// the promised targets. It leaves out PTX, which is no code for a GPU. Code for one
// architecture or family (sm_90a, sm_100f) supplements the plain code: NCCL always
// compiles some kernels for sm_100f (src/device/Makefile at v2.29.7-1,
// NVCC_GENCODE_LDMC_FP8). It is judged only if there is no other code.
func (inside inventory) judged(promised []string) []string {
	targets := slices.Concat(slices.Collect(maps.Keys(inside)), promised)
	targets = slices.DeleteFunc(targets, func(t string) bool { return strings.HasPrefix(t, "compute_") })
	plain := slices.DeleteFunc(slices.Clone(targets), func(t string) bool {
		return strings.HasPrefix(t, "sm_") && strings.ContainsAny(t[len(t)-1:], "af")
	})
	if len(plain) > 0 {
		targets = plain
	}
	slices.Sort(targets)
	return slices.Compact(targets)
}

func matching(pattern string, names []string) (found []string) {
	for _, name := range names {
		if matches([]string{pattern}, name) {
			found = append(found, name)
		}
	}
	return found
}
