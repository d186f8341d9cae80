package gate

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"

	"builder/internal/files/elf"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

var buildPaths = Gate{
	Name:   "build-paths",
	Asks:   "the artifact holds no directory of its builder's account or machine",
	Remedy: "it was built in a personal directory: the same sources make other bytes elsewhere, and the artifact discloses the directory. Build it with builder run, or map the directory (-ffile-prefix-map=DIR=.)",
	Wants:  func(e recipe.Expect) bool { return len(e.Extensions) > 0 },
	check:  checkPaths,
}

// ofSomebody matches a path in a home directory, a generated path in a directory for
// temporary files, or a path of a CI machine. It does not match a name with a printf
// verb, because such names are made at run time.
var ofSomebody = regexp.MustCompile(`(?:^|[\s=:"'(])(/(?:home|Users|root)/[\w.+-][^\s:"']*|/tmp/[\w.+-]*\d[^\s:"'%]*(?:$|[\s:"'])|/(?:github|__w|builds|var/lib/jenkins)/[\w.+-][^\s:"']*)`)

func checkPaths(ctx context.Context, s Subject) verdict.Verdict {
	return s.members().each(ctx, filesLike(s.Expect.Extensions), func(name string, r io.ReaderAt) (problems, seen []string, err error) {
		var found []string
		known := map[string]bool{}
		texts := 0
		err = elf.EachSourceText(r, func(text string) {
			texts++
			if !strings.Contains(text, "/") { // rules out nearly all of a million texts
				return
			}
			m := ofSomebody.FindStringSubmatch(text)
			if m == nil {
				return
			}
			if path := strings.TrimSpace(m[1]); len(found) < 1000 && !known[path] {
				known[path], found = true, append(found, path)
			}
		})
		if err != nil {
			return nil, nil, err
		}
		if len(found) > 0 {
			return []string{fmt.Sprintf("%s holds %s", name, listed(found, 3))}, nil, nil
		}
		return nil, []string{fmt.Sprintf("%s: none in %d texts", name, texts)}, nil
	})
}
