package gate

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
	"builder/internal/plan/version"
)

var builtFlags = Gate{
	Name:   "built-flags",
	Asks:   "nccl_built(), rocm_built(), cuda_built(), mpi_built() and gloo_built() return the promised values",
	Remedy: "the library was compiled against another stack than the cell's, or without one",
	Wants:  wantsBuiltFlags,
	Needs:  Container,
	check:  checkBuiltFlags,
}

//go:embed scripts/built.py
var builtScript string

func checkBuiltFlags(ctx context.Context, s Subject) verdict.Verdict {
	out, err := s.probe(ctx, builtCommand(s.Expect))
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	var have map[string]string
	if err := json.Unmarshal([]byte(jsonLine(out.Output)), &have); err != nil || out.Exit != 0 {
		return verdict.Unmeasured("exit %d: %s", out.Exit, lastLine(out.Output))
	}
	var problems, seen []string
	for _, name := range slices.Sorted(maps.Keys(s.Expect.Built)) {
		problem, err := builtFault(have[name], s.Expect.Built[name])
		if err != nil {
			return verdict.Unmeasured("%s_built(): %v", name, err)
		}
		if problem != "" {
			problems = append(problems, name+"_built() is "+problem)
		}
		seen = append(seen, fmt.Sprintf("%s_built()=%s", name, have[name]))
	}
	return verdict.Judge(problems, seen)
}

func wantsBuiltFlags(e recipe.Expect) bool { return len(e.Built) > 0 && len(e.Import) > 0 }

func builtCommand(e recipe.Expect) Command {
	return Command{
		Name: "built-flags", Args: []string{"PYTHON", "built.py", e.Import[0]},
		Files: map[string]string{"built.py": builtScript},
	}
}

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
	is, err := version.Parse(ncclRelease(number))
	if err != nil {
		return "", err
	}
	if !want.Allows(is) {
		return fmt.Sprintf("%s, which is version %s; expected %s", have, is, promise), nil
	}
	return "", nil
}
