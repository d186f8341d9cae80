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
	said, err := s.in(s.Box).answers(ctx, "import")
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	digests, unread := said[0].all.digests, said[0].all.unread
	if len(s.Expect.Frameworks) == 0 { // a module need not load an extension
		digests, unread = nil, nil
	}
	if unread != nil {
		return verdict.Unmeasured("%v", unread)
	}
	var problems, seen []string
	for i, module := range importsOf(s.Expect) {
		is := said[i]
		statement := "import " + module
		var faults []string
		switch {
		case is.Exit == nil || *is.Exit != 0 && *is.Exit != exitOfImport:
			faults = append(faults, is.how())
		case !is.End:
			faults = append(faults, fmt.Sprintf("the process ended with %s before the import had", exited(is.Exit)))
		case *is.Exit == 0:
			faults = append(faults, fmt.Sprintf("the program ended with %d, and its process with 0: %s", exitOfImport, hidden))
		default:
			faults = strange(is.rankEnd, digests)
			if len(is.Sockets) > 0 {
				faults = append(faults, "it opens the network with "+listed(is.Sockets, 3))
			}
			if is.all.Datagrams > 0 {
				faults = append(faults, fmt.Sprintf("it sends %d datagrams", is.all.Datagrams))
			}
			if len(is.all.Left) > 0 {
				faults = append(faults, fmt.Sprintf("it starts %s, which runs on after its process has ended", listed(is.all.Left, 3)))
			}
			if len(is.all.Written) > 0 {
				faults = append(faults, "it writes "+some(is.all.Written))
			}
			seen = append(seen, statement)
		}
		for _, fault := range faults {
			problems = append(problems, statement+": "+fault)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(digests)) {
		seen = append(seen, "it maps "+name+" of the wheel")
	}
	v := verdict.Judge(problems, seen)
	if slices.ContainsFunc(said, func(is answer) bool { return len(is.all.Left)+len(is.all.Written) > 0 }) && v.Status == verdict.Fail {
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
