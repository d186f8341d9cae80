package gate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"builder/internal/files/wheel"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

const extensionRemedy = "correct the pattern in expect.extensions if the wheel holds the library under another name; otherwise the build went on without it: look for the first compiler or configure error in the build log"

var extensionPresent = Gate{
	Name:   "extension-present",
	Asks:   "one extension for each requested framework, none for the others, and no other file of native code",
	Remedy: extensionRemedy,
	Promise: recipe.Promise{
		Of:   extensionSettings{},
		Says: "compiled files that the wheel may not hold",
	},
	Wants: func(e recipe.Expect) bool { return len(e.Extensions) > 0 || states("extension-present")(e) },
	check: checkExtensions,
}

type extensionSettings struct {
	Absent []string `yaml:"absent" json:"absent" jsonschema:"minItems=1,description=no file may match"`
}

// Check implements [recipe.Checker].
func (e extensionSettings) Check(problem recipe.Report) { problem.Patterns(".absent", e.Absent) }

func checkExtensions(ctx context.Context, s Subject) verdict.Verdict {
	excluded := settings[extensionSettings](s.Expect, "extension-present")
	w, err := wheel.Open(s.Artifact)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	defer w.Close()
	var problems, seen []string
	unasked, absent := 0, false
	for _, pattern := range s.Expect.Extensions {
		found := match(w, pattern)
		absent = absent || len(found) == 0
		switch len(found) {
		case 0:
			problems = append(problems, fmt.Sprintf("0 files match %s, expected 1", pattern))
		case 1:
			seen = append(seen, found[0])
		default:
			problems = append(problems, fmt.Sprintf("%d files match %s, expected 1: %v", len(found), pattern, found))
		}
	}
	for _, pattern := range excluded.Absent {
		if found := match(w, pattern); len(found) > 0 {
			problems = append(problems, fmt.Sprintf("%s was not requested", strings.Join(found, ", ")))
			unasked++
			continue
		}
		seen = append(seen, "no "+pattern)
	}
	onlyUnasked := unasked > 0 && unasked == len(problems)
	promised := len(problems) == 0
	if len(s.Expect.Frameworks) > 0 {
		problems = append(problems, unpromised(ctx, s.Unpacked, w, slices.Concat(s.Expect.Extensions, excluded.Absent))...)
	}
	if absent {
		problems = append(problems, "the wheel holds "+cmp.Or(listed(librariesOf(w), 5), "no library"))
	}
	a := verdict.Judge(problems, seen)
	switch {
	case promised && len(problems) > 0:
		return a.Because("the build or its script added a library: leave it out, or promise it with expect.extensions, so that the other gates read it too")
	case onlyUnasked && len(s.Expect.Frameworks) > 0:
		return a.Because("the build found another framework too: set HOROVOD_WITHOUT_<FRAMEWORK>=1 for frameworks you do not want")
	case onlyUnasked:
		return a.Because("the wheel holds a library that expect.extension-present excludes: change the build so that it leaves the library out, or correct the pattern")
	case absent && len(s.Expect.Frameworks) > 0:
		return a.Because("%s. Horovod goes on without its framework: set HOROVOD_WITH_<FRAMEWORK>=1", extensionRemedy)
	}
	return a
}

// unpromised names the files with native code, whatever their names, that are no promised
// extension. The extension may load them, and gates that ask the extension would hear
// them. The known names are the promised ones, and those that have a problem already.
func unpromised(ctx context.Context, unpacked *Unpacked, w *wheel.Wheel, known []string) (problems []string) {
	for _, f := range w.Files {
		if matches(known, f.Name) {
			continue
		}
		err := unpacked.read(ctx, w, f.Name, func(r io.ReaderAt) error {
			if native, _ := nativeFault(r, w.Name); native {
				problems = append(problems, f.Name+" is native code that nobody promised")
			}
			return nil
		})
		if err != nil {
			problems = append(problems, err.Error())
		}
	}
	return problems
}
