package gate

import (
	"context"
	"fmt"
	"strings"

	"builder/internal/files/wheel"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

var extensionPresent = Gate{
	Name:   "extension-present",
	Asks:   "one extension for each requested framework, none for the others",
	Remedy: "the build went on without the extension: look for the first compiler or configure error in the build log. Horovod does so without its framework: set HOROVOD_WITH_<FRAMEWORK>=1",
	Wants:  func(e recipe.Expect) bool { return len(e.Extensions)+len(e.NoExtensions) > 0 },
	check:  checkExtensions,
}

func checkExtensions(_ context.Context, s Subject) verdict.Verdict {
	w, err := wheel.Open(s.Artifact)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	defer w.Close()
	var problems, seen []string
	unasked := 0
	for _, pattern := range s.Expect.Extensions {
		found := match(w, pattern)
		if len(found) != 1 {
			problems = append(problems, fmt.Sprintf("%d files match %s, expected 1: %v", len(found), pattern, found))
			continue
		}
		seen = append(seen, found[0])
	}
	for _, pattern := range s.Expect.NoExtensions {
		if found := match(w, pattern); len(found) > 0 {
			problems = append(problems, fmt.Sprintf("%s was not requested", strings.Join(found, ", ")))
			unasked++
			continue
		}
		seen = append(seen, "no "+pattern)
	}
	a := verdict.Judge(problems, seen)
	if unasked > 0 && unasked == len(problems) {
		return a.Because("the build found another framework too: set HOROVOD_WITHOUT_<FRAMEWORK>=1 for frameworks you do not want")
	}
	return a
}
