package gate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"builder/internal/gates/verdict"
	"builder/internal/machine/nccltests"
	"builder/internal/plan/recipe"
	"builder/internal/plan/version"
)

var builtFlags = Gate{
	Name:   "built-flags",
	Asks:   "nccl_built(), rocm_built(), cuda_built(), mpi_built() and gloo_built() return the promised values, in Python and in the extension, as far as its bytes have them",
	Remedy: "the library was compiled against another stack than the cell's, or without one",
	Promise: recipe.Promise{
		Of:   map[string]string{},
		Says: "NAME_built() of the module: true; false; or for nccl a version",
	},
	Wants: wantsBuiltFlags,
	Needs: Container,
	check: checkBuiltFlags,
}

// built returns the promised values of NAME_built().
func built(e recipe.Expect) map[string]string {
	return settings[map[string]string](e, "built-flags")
}

func checkBuiltFlags(ctx context.Context, s Subject) verdict.Verdict {
	promised := built(s.Expect)
	said, err := s.answers(ctx, "built-flags")
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	claims, err := s.claims(ctx)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	var all []map[string]string
	for _, is := range said {
		report, err := onlyReport[struct{ Flags map[string]string }](is)
		if err != nil {
			return verdict.Unmeasured("%v", err)
		}
		all = append(all, report.Flags)
	}
	have := all[0]
	var problems, seen []string
	for _, name := range slices.Sorted(maps.Keys(promised)) {
		problem, err := builtFault(have[name], promised[name])
		if err != nil {
			return verdict.Unmeasured("%s_built(): %v", name, err)
		}
		if problem != "" {
			problems = append(problems, name+"_built() is "+problem)
		}
		seen = append(seen, fmt.Sprintf("%s_built()=%s", name, have[name]))
	}
	for _, library := range all[1:] {
		for _, name := range slices.Sorted(maps.Keys(library)) {
			if library[name] != have[name] {
				problems = append(problems, fmt.Sprintf("%s_built() of the module is %s, and that of its extension is %s", name, have[name], library[name]))
			}
		}
	}
	flags := map[string]bool{}
	for _, name := range []string{"mpi", "gloo", "nccl", "rocm", "cuda"} {
		flags[name] = have[name] != "false" && have[name] != "0"
	}
	denied, agreed := claims.compare(flags, "_built()")
	problems = append(problems, denied...)
	return verdict.Judge(problems, append(seen, agreed))
}

func wantsBuiltFlags(e recipe.Expect) bool { return states("built-flags")(e) && len(e.Import) > 0 }

// builtFault describes how the result of NAME_built() differs from its promise. The
// promise is true, false, or a constraint on a version; the function returns versions
// in NCCL's number format.
func builtFault(have, promise string) (string, error) {
	if promise == "true" || promise == "false" {
		if have != promise {
			return fmt.Sprintf("%s, expected %s", cmp.Or(have, "missing"), promise), nil
		}
		return "", nil
	}
	want, err := version.ParseConstraint(promise)
	if err != nil {
		return "", err
	}
	number, err := strconv.Atoi(have)
	if err != nil || number <= 0 {
		return fmt.Sprintf("%s, expected version %s", cmp.Or(have, "missing"), promise), nil
	}
	is, err := version.Parse(nccltests.VersionOf(number))
	if err != nil {
		return "", err
	}
	if !want.Allows(is) {
		return fmt.Sprintf("%s, which is version %s; expected %s", have, is, promise), nil
	}
	return "", nil
}
