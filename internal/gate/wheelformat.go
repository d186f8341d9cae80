package gate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"builder/internal/recipe"
	"builder/internal/verdict"
	"builder/internal/wheel"
)

var wheelFormat = Gate{
	Name:   "wheel-format",
	Asks:   "tags, RECORD, metadata and paths are in order, the version is the promised one, and nothing lies outside the promised packages",
	Remedy: "the wheel was truncated, edited after the build, or made by a broken backend: build it again",
	Wants:  func(e recipe.Expect) bool { return e.Tree == "" && e.Wheelhouse == nil },
	check:  checkWheelFormat,
}

func checkWheelFormat(_ context.Context, s Subject) verdict.Verdict {
	w, err := wheel.Open(s.Artifact)
	if err != nil {
		return verdict.Failed("%v", err)
	}
	defer w.Close()
	faults := w.Check()
	for _, f := range w.Files {
		if outside(f.Name, w.DistInfo, s.Expect.Packages) {
			faults = append(faults, fmt.Sprintf("%s lies outside the promised packages %s", f.Name, strings.Join(s.Expect.Packages, ", ")))
		}
	}
	if want := s.Expect.Version; want != "" && !w.Name.HasVersion(want) {
		a := verdict.Judge(append(faults, fmt.Sprintf("the version is %s, promised is %s", w.Name.Version, want)), nil)
		return a.Because("the local part did not reach the backend: HOROVOD_LOCAL_VERSION or WHEEL_VERSION in the recipe's env")
	}
	return verdict.Judge(faults, []string{fmt.Sprintf("%s: %d files, RECORD complete", w.Name, len(w.Files))})
}

// outside reports whether a file is installed elsewhere than in the packages.
// What lies in .data goes where its second directory says (PEP 427): beside the
// packages, to the programs, or anywhere below the prefix.
func outside(name, distInfo string, packages []string) bool {
	top, rest, _ := strings.Cut(name, "/")
	if len(packages) == 0 || top == distInfo {
		return false
	}
	if top == strings.TrimSuffix(distInfo, ".dist-info")+".data" {
		scheme, below, _ := strings.Cut(rest, "/")
		switch scheme {
		case "scripts", "headers":
			return false
		case "purelib", "platlib":
			top, _, _ = strings.Cut(below, "/")
		}
	}
	return !slices.Contains(packages, top)
}
