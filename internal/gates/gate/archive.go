package gate

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"

	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

var archive = Gate{
	Name:   "archive",
	Asks:   "the archive beside the wheel holds the same library, byte for byte, in upstream's layout",
	Remedy: "the recipe's script packs two different builds, or leaves a file out: pack the library checked by the gates into the archive",
	Promise: recipe.Promise{
		Of:   "",
		Says: "name of the file beside the wheel that holds the same in upstream's layout",
	},
	Wants: func(e recipe.Expect) bool { return states("archive")(e) && e.Library != "" },
	check: checkArchive,
}

func checkArchive(_ context.Context, s Subject) verdict.Verdict {
	name := settings[string](s.Expect, "archive")
	at := slices.IndexFunc(s.Beside, func(p string) bool { return filepath.Base(p) == name })
	if at < 0 {
		return verdict.Failed("%s is missing beside the wheel", name)
	}
	digests, err := digestsOf(s.Artifact, s.Expect.Library)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	found, err := readArchive(s.Beside[at], name, maxArchive)
	if err != nil {
		return verdict.Failed("%s: %v", name, err)
	}
	library := path.Base(s.Expect.Library)
	return verdict.Judge(append(found.problems, found.differs(library, digests[s.Expect.Library])...),
		[]string{fmt.Sprintf("%s: %d files, lib/%s as in the wheel", name, len(found.files), library)})
}
