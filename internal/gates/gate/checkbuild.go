package gate

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

var checkBuild = Gate{
	Name:   "check-build",
	Asks:   "horovodrun --check-build lists the requested framework, controllers and operations, as far as the bytes of the extension have them",
	Remedy: "a part without [X] was not compiled in or cannot be loaded: read the gate import, then the configure log",
	Promise: recipe.Promise{
		Of:   buildSettings{},
		Says: "lines of horovodrun --check-build",
	},
	Wants: wantsCheckBuild,
	Needs: Container,
	check: runCheckBuild,
}

type buildSettings struct {
	Controllers []string `yaml:"controllers,omitempty" json:"controllers,omitempty" jsonschema:"description=names of controllers in the output of horovodrun --check-build"`
	Operations  []string `yaml:"operations,omitempty" json:"operations,omitempty" jsonschema:"description=names of operations in the same output"`
}

// listedBuild returns the promised lines of the listing.
func listedBuild(e recipe.Expect) buildSettings { return settings[buildSettings](e, "check-build") }

func runCheckBuild(ctx context.Context, s Subject) verdict.Verdict {
	promised := listedBuild(s.Expect)
	said, err := s.in(s.Box).answers(ctx, "check-build")
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	listing, err := parseCheckBuild(said[0].all.Log)
	if err != nil {
		// The exit status is 0 for any listing, so another status only indicates a
		// crash.
		return verdict.Unmeasured("horovodrun --check-build (%s): %v: %s", exited(said[0].Exit), err, lastLine(said[0].all.Log))
	}
	claims, err := claimsOf(ctx, s.members(), s.Expect.Extensions)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	problems := slices.Concat(
		unticked("framework", listing["Frameworks"], s.Expect.Frameworks),
		unticked("controller", listing["Controllers"], promised.Controllers),
		unticked("tensor operation", listing["Tensor Operations"], promised.Operations),
	)
	for _, name := range slices.Sorted(maps.Keys(listing["Controllers"])) {
		if listing["Controllers"][name] && !slices.Contains(promised.Controllers, name) {
			problems = append(problems, fmt.Sprintf("controller [X] %s was not requested", name))
		}
	}
	denied, seen := claims.compare(map[string]bool{
		"mpi": listing["Controllers"]["MPI"], "gloo": listing["Controllers"]["Gloo"], "nccl": listing["Tensor Operations"]["NCCL"],
	}, "[X]")
	problems = append(problems, denied...)
	// The gate extension-present judges additional frameworks: horovodrun prints [X]
	// PyTorch even without its extension, because horovod/torch/__init__.py swallows
	// the ImportError (horovod#2713).
	return verdict.Judge(problems, []string{"[X] " + strings.Join(slices.Concat(s.Expect.Frameworks, promised.Controllers, promised.Operations), ", [X] "), seen})
}

func wantsCheckBuild(e recipe.Expect) bool {
	return len(e.Frameworks) > 0 || states("check-build")(e)
}

// unticked names every wanted item without a tick.
func unticked(kind string, have map[string]bool, want []string) (problems []string) {
	for _, name := range want {
		if on, listed := have[name]; !listed {
			problems = append(problems, fmt.Sprintf("%s %s is not listed", kind, name))
		} else if !on {
			problems = append(problems, fmt.Sprintf("%s [ ] %s", kind, name))
		}
	}
	return problems
}

var checkBuildLine = regexp.MustCompile(`(?m)^\s*(?:Available (Frameworks|Controllers|Tensor Operations):|\[([X ])\] (.*?))\s*$`)

// parseCheckBuild parses the output of horovodrun --check-build (horovod/runner/launch.py,
// check_build, at v0.28.1). It returns for each section the items, with whether they are
// ticked. It requires all three sections with at least one item each, because truncated
// output is not a listing.
func parseCheckBuild(output string) (map[string]map[string]bool, error) {
	listing := map[string]map[string]bool{"Frameworks": {}, "Controllers": {}, "Tensor Operations": {}}
	var current map[string]bool
	for _, m := range checkBuildLine.FindAllStringSubmatch(output, -1) {
		if m[1] != "" {
			current = listing[m[1]]
		} else if current != nil {
			current[m[3]] = m[2] == "X"
		}
	}
	for _, section := range slices.Sorted(maps.Keys(listing)) {
		if len(listing[section]) == 0 {
			return nil, fmt.Errorf("no items under %q", "Available "+section+":")
		}
	}
	return listing, nil
}
