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
	allowed, err := allowedFeatures(promised.Allowed)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	return eachExtension(ctx, s, func(name string, r io.ReaderAt) (problems, seen []string, err error) {
		uses, err := elf.CPUUses(r)
		if err != nil {
			return nil, nil, err
		}
		var taken []string
		for _, of := range byFeature(uses) {
			feature := of[0].Feature
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
func allowedFeatures(names []string) ([]x86.Feature, error) {
	var all []x86.Feature
	for _, name := range names {
		level, ok := x86.Level(name)
		if !ok && !slices.Contains(x86.Features(), x86.Feature(name)) {
			return nil, fmt.Errorf("unknown level or extension of x86-64: %q", name)
		}
		all = append(append(all, level...), x86.Feature(name))
	}
	return all, nil
}

// byFeature groups uses sorted by feature.
func byFeature(uses []elf.CPUUse) (groups [][]elf.CPUUse) {
	for len(uses) > 0 {
		n := slices.IndexFunc(uses, func(u elf.CPUUse) bool { return u.Feature != uses[0].Feature })
		if n < 0 {
			n = len(uses)
		}
		groups, uses = append(groups, uses[:n]), uses[n:]
	}
	return groups
}

// places names the first functions and the number of all.
func places(uses []elf.CPUUse) string {
	const shown = 3
	var names []string
	for _, u := range uses[:min(shown, len(uses))] {
		name := u.Function
		if name == "" {
			name = "code without a name"
		}
		names = append(names, fmt.Sprintf("%s (%#x)", name, u.First))
	}
	if len(uses) > shown {
		names = append(names, fmt.Sprintf("and %d more functions", len(uses)-shown))
	}
	return strings.Join(names, ", ")
}
