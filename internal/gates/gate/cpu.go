package gate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/files/elf"
	"builder/internal/files/x86"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

var cpuISA = Gate{
	Name:   "cpu-isa",
	Asks:   "no instruction needs more of the processor than promised, except in functions that check the processor first",
	Remedy: "the compiler got -march=native or another level than the recipe promises, and the library ends with SIGILL on an older processor: set the flags of the build (-march; for Horovod HOROVOD_BUILD_ARCH_FLAGS, without which it takes the build machine's)",
	Promise: recipe.Promise{
		Of:   cpuSettings{},
		Says: "what the code may ask of the processor",
	},
	Wants: states("cpu-isa"),
	check: checkCPU,
}

type cpuSettings struct {
	Allowed    []string `yaml:"allowed" json:"allowed" jsonschema:"minItems=1,description=extensions of the processor that the code may use: a level (x86-64-v2) or names as of GCC's -m (avx; f16c)"`
	Dispatched []string `yaml:"dispatched,omitempty" json:"dispatched,omitempty" jsonschema:"description=functions that may use any extension because something asks the processor first"`
}

// Check implements [recipe.Checker].
func (c cpuSettings) Check(problem recipe.Report) {
	for i, text := range c.Allowed {
		if !slices.Contains(x86.Names(), text) {
			problem(fmt.Sprintf(".allowed[%d]", i), "%q is no level or extension of x86-64", text).Hint = diag.DidYouMean(text, x86.Names())
		}
	}
	problem.Patterns(".dispatched", c.Dispatched)
}

func checkCPU(ctx context.Context, s Subject) verdict.Verdict {
	promised := settings[cpuSettings](s.Expect, "cpu-isa")
	allowed := allowedFeatures(promised.Allowed)
	return s.members().each(ctx, filesLike(s.Expect.Extensions), func(name string, r io.ReaderAt) (problems, seen []string, err error) {
		uses, err := elf.CPUUses(r)
		if err != nil {
			return nil, nil, err
		}
		var features []x86.Feature
		for _, u := range uses {
			features = append(features, u.Feature)
		}
		var taken []string
		for _, feature := range slices.Compact(features) { // uses are sorted by feature
			of := slices.DeleteFunc(slices.Clone(uses), func(u elf.CPUUse) bool { return u.Feature != feature })
			undispatched := slices.DeleteFunc(slices.Clone(of), func(u elf.CPUUse) bool { return u.Function != "" && matches(promised.Dispatched, u.Function) })
			switch {
			case slices.Contains(allowed, feature):
				taken = append(taken, string(feature))
			case len(undispatched) > 0:
				problems = append(problems, fmt.Sprintf("%s uses %s in %s; expected %s", name, feature, places(undispatched), strings.Join(promised.Allowed, ", ")))
			default:
				taken = append(taken, fmt.Sprintf("%s in functions that check first (%d)", feature, len(of)))
			}
		}
		return problems, []string{fmt.Sprintf("%s uses %s", name, cmp.Or(strings.Join(taken, ", "), "none"))}, nil
	})
}

// allowedFeatures returns the features of levels and extensions.
func allowedFeatures(names []string) (all []x86.Feature) {
	for _, name := range names {
		level, _ := x86.Level(name)
		all = append(append(all, level...), x86.Feature(name))
	}
	return all
}

// places names the first functions and the number of all.
func places(uses []elf.CPUUse) string {
	const shown = 3
	var names []string
	for _, u := range uses[:min(shown, len(uses))] {
		names = append(names, fmt.Sprintf("%s (%#x)", cmp.Or(u.Function, "code without a name"), u.First))
	}
	if len(uses) > shown {
		names = append(names, fmt.Sprintf("and %d more functions", len(uses)-shown))
	}
	return strings.Join(names, ", ")
}
