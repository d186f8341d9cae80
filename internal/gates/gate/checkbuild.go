package gate

import (
	"context"
	"fmt"
	"maps"
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
	said, err := s.answers(ctx, "check-build")
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	listing, err := parseCheckBuild(said[0].all.Log)
	if err != nil {
		// The exit status is 0 for any listing, so another status only indicates a
		// crash.
		return verdict.Unmeasured("horovodrun --check-build (%s): %v: %s", exited(said[0].Exit), err, lastLine(said[0].all.Log))
	}
	claims, err := s.claims(ctx)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	problems := slices.Concat(
		listing.lacks("framework", listing.frameworks, s.Expect.Frameworks),
		listing.lacks("controller", listing.controllers, promised.Controllers),
		listing.lacks("tensor operation", listing.operations, promised.Operations),
	)
	for _, name := range ticked(listing.controllers) {
		if !slices.Contains(promised.Controllers, name) {
			problems = append(problems, fmt.Sprintf("controller [X] %s was not requested", name))
		}
	}
	denied, seen := claims.compare(map[string]bool{
		"mpi": listing.controllers["MPI"], "gloo": listing.controllers["Gloo"], "nccl": listing.operations["NCCL"],
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

// checkBuildListing is the output of horovodrun --check-build. It maps names to whether
// they are ticked.
type checkBuildListing struct {
	frameworks, controllers, operations map[string]bool
}

// lacks names every wanted item without a tick.
func (checkBuildListing) lacks(kind string, have map[string]bool, want []string) []string {
	var problems []string
	for _, name := range want {
		if on, listed := have[name]; !listed {
			problems = append(problems, fmt.Sprintf("%s %s is not listed", kind, name))
		} else if !on {
			problems = append(problems, fmt.Sprintf("%s [ ] %s", kind, name))
		}
	}
	return problems
}

func ticked(have map[string]bool) []string {
	var on []string
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if have[name] {
			on = append(on, name)
		}
	}
	return on
}

// parseCheckBuild parses the listing (horovod/runner/launch.py, check_build, at
// v0.28.1). It requires all three sections with at least one item each, because
// truncated output is not a listing.
func parseCheckBuild(output string) (checkBuildListing, error) {
	l := checkBuildListing{map[string]bool{}, map[string]bool{}, map[string]bool{}}
	sections := map[string]map[string]bool{
		"Available Frameworks:":        l.frameworks,
		"Available Controllers:":       l.controllers,
		"Available Tensor Operations:": l.operations,
	}
	var current map[string]bool
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if section, ok := sections[line]; ok {
			current = section
			continue
		}
		name, on := strings.CutPrefix(line, "[X] ")
		if !on {
			var off bool
			if name, off = strings.CutPrefix(line, "[ ] "); !off {
				continue
			}
		}
		if current != nil {
			current[name] = on
		}
	}
	for _, title := range slices.Sorted(maps.Keys(sections)) {
		if len(sections[title]) == 0 {
			return l, fmt.Errorf("no items under %q", title)
		}
	}
	return l, nil
}
