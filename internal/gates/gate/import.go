package gate

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

var importModule = Gate{
	Name:   "import",
	Asks:   "the promised modules (for Horovod, the framework's extension) import in a clean container, with the extension of the wheel mapped; they write no file, open no network connection, and leave exit statuses alone",
	Remedy: "the extension does not fit the installed framework: an undefined symbol names the differing library; or the run-time image lacks a library: read the gate elf-symbols; or the run-time packages lack a needed module; or the wheel lacks the module: correct expect.import",
	Wants:  func(e recipe.Expect) bool { return len(e.Import) > 0 },
	Needs:  Container,
	check:  checkImport,
}

// exitOfImport is the exit status of a program after its import.
const exitOfImport = 33

func checkImport(ctx context.Context, s Subject) verdict.Verdict {
	said, err := s.answers(ctx, "import")
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	digests := map[string]string{}
	if len(s.Expect.Frameworks) > 0 {
		if digests, err = s.digests(s.Expect.Extensions...); err != nil {
			return verdict.Unmeasured("%v", err)
		}
	}
	var problems, seen []string
	for i, module := range importsOf(s.Expect) {
		statement, is := "import "+module, said[i]
		switch {
		case is.Exit == nil || *is.Exit != 0 && *is.Exit != exitOfImport:
			problems = append(problems, fmt.Sprintf("%s: %s: %s", statement, exited(is.Exit), lastLine(is.Output)))
		case !is.End:
			problems = append(problems, fmt.Sprintf("%s: the process ended with %s before the import had", statement, exited(is.Exit)))
		case *is.Exit == 0:
			problems = append(problems, fmt.Sprintf("%s: the program ended with %d, and its process with 0: a job that fails looks like one that did not", statement, exitOfImport))
		default:
			for _, problem := range strange(is.rankEnd, digests) {
				problems = append(problems, statement+": "+problem)
			}
			if len(is.Sockets) > 0 {
				problems = append(problems, fmt.Sprintf("%s: it opens the network with %s", statement, listed(is.Sockets, 3)))
			}
			if len(is.Left) > 0 {
				problems = append(problems, fmt.Sprintf("%s: it starts %s, which runs on after its process has ended", statement, listed(is.Left, 3)))
			}
			if len(is.Written) > 0 {
				problems = append(problems, fmt.Sprintf("%s: it writes %s", statement, some(is.Written)))
			}
			seen = append(seen, statement)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(digests)) {
		seen = append(seen, "it maps "+name+" of the wheel")
	}
	v := verdict.Judge(problems, seen)
	if slices.ContainsFunc(said, func(is answer) bool { return len(is.Left)+len(is.Written) > 0 }) && v.Status == verdict.Fail {
		return v.Because("no library of a wheel has a reason to start a process of its own or to write a file when it is loaded: read what the build script and the patches add, and build it again")
	}
	return v
}

// importsOf lists the modules to import. The package of a framework imports even without
// its extension.
func importsOf(e recipe.Expect) (all []string) {
	for _, module := range e.Import {
		if len(e.Frameworks) > 0 {
			module += ".mpi_ops"
		}
		all = append(all, module)
	}
	return all
}
