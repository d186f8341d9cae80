package gate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"builder/internal/files/elf"
	"builder/internal/files/x86"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

var cpuISA = Gate{
	Name:   "cpu-isa",
	Asks:   "no instruction needs more of the processor than promised, except in functions that check the processor first",
	Remedy: "the compiler got -march=native or another level than the recipe promises, and the library ends with SIGILL on an older processor: set the flags of the build (-march; for Horovod HOROVOD_BUILD_ARCH_FLAGS, without which it takes the build machine's)",
	Wants:  func(e recipe.Expect) bool { return len(e.CPU) > 0 },
	check:  checkCPU,
}

func checkCPU(ctx context.Context, s Subject) verdict.Verdict {
	allowed, err := allowedFeatures(s.Expect.CPU)
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
			undispatched := slices.DeleteFunc(slices.Clone(of), func(u elf.CPUUse) bool { return dispatched(s.Expect.CPUDispatch, u.Function) })
			switch {
			case slices.Contains(allowed, feature):
				taken = append(taken, string(feature))
			case len(undispatched) > 0:
				problems = append(problems, fmt.Sprintf("%s uses %s in %s; expected %s", name, feature, places(undispatched), strings.Join(s.Expect.CPU, ", ")))
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

func dispatched(patterns []string, function string) bool {
	return function != "" && slices.ContainsFunc(patterns, func(p string) bool { return anyMatch(p, []string{function}) })
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
