package gate

import (
	"context"
	"fmt"

	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

var importModule = Gate{
	Name:   "import",
	Asks:   "the promised modules (for Horovod, the framework's extension) import in a clean container",
	Remedy: "the extension does not fit the installed framework: an undefined symbol names the differing library; or the run-time image lacks a library: read the gate elf-symbols; or the run-time packages lack a needed module; or the wheel lacks the module: correct expect.import",
	Wants:  func(e recipe.Expect) bool { return len(e.Import) > 0 },
	Needs:  Container,
	check:  checkImport,
}

func checkImport(ctx context.Context, s Subject) verdict.Verdict {
	var problems, seen []string
	for _, c := range importCommands(s.Expect) {
		statement := c.Args[len(c.Args)-1]
		out, err := s.probe(ctx, c)
		if err != nil {
			return verdict.Unmeasured("%v", err)
		}
		if out.Exit != 0 {
			problems = append(problems, fmt.Sprintf("%s: exit %d: %s", statement, out.Exit, lastLine(out.Output)))
			continue
		}
		seen = append(seen, statement)
	}
	return verdict.Judge(problems, seen)
}

// importCommands returns one import statement for each promised module.
func importCommands(e recipe.Expect) (all []Command) {
	for _, module := range e.Import {
		if len(e.Frameworks) > 0 {
			module += ".mpi_ops" // the package of a framework imports even without its extension
		}
		all = append(all, Command{Name: "import", Args: []string{"PYTHON", "-c", "import " + module}})
	}
	return all
}
